/** Keys of a view: they act only while the focus is in it, and there before the notebook sees them. */

/** What a view inside another one is asked first; it calls `preventDefault` when it took the key. */
export const KEY = 'tl-key';

/**
 * Calls `act` with each key pressed while the focus is inside `root`; true means taken. In a text field only Escape counts.
 * It listens on `window` in the capture phase because JupyterLab handles keys on `document` before an element sees them.
 */
export function captureKeys(
  root: HTMLElement,
  act: (key: string) => boolean,
  leaveField: () => void
): () => void {
  const onKeydown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || !root.isConnected) {
      return;
    }
    const field = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (field) {
      // Letters go into the field, not to the notebook; Escape leaves it.
      if (event.key === 'Escape') {
        event.preventDefault();
        event.stopPropagation();
        leaveField();
      }
      return;
    }
    if (act(event.key === 'Enter' && event.shiftKey ? 'Shift+Enter' : event.key)) {
      event.preventDefault();
      event.stopPropagation();
    }
  };
  const onFocus = (): void => window.addEventListener('keydown', onKeydown, true);
  const onBlur = (event: FocusEvent): void => {
    if (!root.contains(event.relatedTarget as Node | null)) {
      window.removeEventListener('keydown', onKeydown, true);
    }
  };
  root.addEventListener('focusin', onFocus);
  root.addEventListener('focusout', onBlur);
  return () => {
    root.removeEventListener('focusin', onFocus);
    root.removeEventListener('focusout', onBlur);
    window.removeEventListener('keydown', onKeydown, true);
  };
}

/** Asks a view inside another one whether it takes a key. */
export function offerKey(view: Element | null | undefined, key: string): boolean {
  return view ? !view.dispatchEvent(new CustomEvent(KEY, { detail: key, cancelable: true })) : false;
}
