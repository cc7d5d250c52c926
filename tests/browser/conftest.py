"""Fixtures: one JupyterLab and one Chromium for all browser tests, a fresh page for each. A message on the console fails the test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.server import Lab, start

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WAIT_MS = 60_000
# Other tests run beside these: a page may take a while, and waiting longer costs nothing when it does not.
expect.set_options(timeout=20_000)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    process, lab = start(tmp_path_factory.mktemp("lab"))
    yield lab
    process.terminate()
    process.wait(timeout=20)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.fail("browser tests need Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@dataclass
class Notebook:
    """A notebook open in JupyterLab."""

    page: Page
    lab: Lab
    complaints: list[str] = field(default_factory=list)

    def open(self, name: str) -> Page:
        """Opens a notebook of the server's folder and waits for its Jupyter kernel: run keys before that are lost."""
        self.page.goto(f"{self.lab.url}/lab/tree/{name}?reset")
        self.page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=WAIT_MS)
        self.page.get_by_text("Python 3 (ipykernel) | Idle").first.wait_for(timeout=WAIT_MS)
        return self.page

    def command(self, command: str, **arguments: object) -> None:
        """Runs a command of the application, as the palette does."""
        self.page.evaluate("([command, args]) => window.jupyterapp.commands.execute(command, args)", [command, arguments])

    def source(self, cell: int) -> str:
        """The text of a cell as the notebook would save it."""
        script = "i => window.jupyterapp.shell.currentWidget.content.widgets[i].model.sharedModel.getSource()"
        text: str = self.page.evaluate(script, cell)
        return text


@pytest.fixture
def notebook(lab: Lab, browser: Browser) -> Iterator[Notebook]:
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    context.set_default_timeout(20_000)
    page = context.new_page()
    notebook = Notebook(page, lab)
    page.on("console", lambda message: notebook.complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: notebook.complaints.append(str(error)))
    yield notebook
    context.close()
    assert notebook.complaints == []
