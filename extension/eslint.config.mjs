import eslint from '@eslint/js';
import jupyter from '@jupyter/eslint-plugin';
import prettier from 'eslint-config-prettier';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['lib/**', 'node_modules/**', 'src/schema.ts', 'src/program-schema.ts'] },
  eslint.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [jupyter.configs.recommended, tseslint.configs.strict, tseslint.configs.stylistic],
    rules: {
      eqeqeq: 'error',
      curly: 'error',
      'no-console': 'error',
      'no-restricted-properties': [
        'error',
        { property: 'innerHTML', message: 'Build DOM with view/dom.ts: a Run is not to be trusted.' },
        { property: 'outerHTML', message: 'Build DOM with view/dom.ts: a Run is not to be trusted.' },
        { property: 'insertAdjacentHTML', message: 'Build DOM with view/dom.ts: a Run is not to be trusted.' }
      ],
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/naming-convention': [
        'error',
        { selector: 'interface', format: ['PascalCase'], custom: { regex: '^I[A-Z]', match: true } }
      ]
    }
  },
  {
    files: ['scripts/**'],
    languageOptions: { globals: { URL: 'readonly' } }
  },
  {
    files: ['test/**/*.ts'],
    rules: { '@typescript-eslint/no-floating-promises': 'off' }
  },
  prettier
);
