import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { pagePolicy } from "@holdfast/gateway/docs/page.ts";
import { type Chromium, startChromium } from "@holdfast/testing/servers/chromium.ts";

const editor = join(import.meta.dirname, "..", "..", "console", "src", "query", "code-editor.ts");
/** Text with several styles, which a browser retains when a user types over it. */
const styled = "SELECT 'text' FROM notes -- a comment";
const program = `
  import { createCodeEditor } from ${JSON.stringify(editor)};
  const host = document.querySelector("main");
  const editor = createCodeEditor(host, {
    text: "", dialect: "PostgreSQL", label: "Statement", description: "help",
    onChange: (text) => { host.dataset.text = text; },
    onRun: () => undefined,
  });
  globalThis.setText = (text) => editor.setText(text);
  globalThis.selectAll = (informs) => {
    addEventListener("selectionchange", (event) => { if (!informs) event.stopImmediatePropagation(); }, {
      capture: true, once: true,
    });
    getSelection().selectAllChildren(host.shadowRoot.querySelector(".cm-line"));
  };
`;

async function startEditorPage(): Promise<Server> {
  const plugin = {
    name: "entry",
    resolveId: (id: string) => (id === "entry" ? id : undefined),
    load: (id: string) => (id === "entry" ? program : undefined),
  };
  const bundle = await rolldown({ input: "entry", platform: "browser", plugins: [plugin] });
  const { output } = await bundle.generate({ format: "esm" });
  await bundle.close();
  const page = '<!doctype html><title>editor</title><main></main><script type="module" src="/editor.js"></script>';
  const server = createServer(({ url }, response) => {
    const isScript = url === "/editor.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html; charset=utf-8");
    response.setHeader("content-security-policy", pagePolicy);
    response.end(isScript ? output[0].code : page);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

describe("the editor of statements, in Chromium", () => {
  let server: Server;
  let chromium: Chromium | string;
  let page: Page;
  let faults: string[] = [];
  beforeEach(() => void (faults = []));
  beforeAll(async () => {
    [server, chromium] = await Promise.all([startEditorPage(), startChromium({})]);
    if (typeof chromium === "string") throw new Error(chromium);
    page = await chromium.browser.newPage();
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => faults.push(message.text()));
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  });
  afterAll(async () => {
    if (typeof chromium === "object") await chromium.close();
    server?.close();
  });

  const statement = () => page.getByLabel("Statement");
  /** Selects all text, as programs of assistive technology do. Without `informs` the editor has no event of it yet. */
  const select = (informs: boolean) => page.evaluate(`selectAll(${informs})`);
  const compose = async (...texts: readonly string[]) => {
    const session = await page.context().newCDPSession(page);
    for (const text of texts) {
      const end = { selectionStart: text.length, selectionEnd: text.length };
      await session.send("Input.imeSetComposition", { text, ...end });
    }
    await session.send("Input.insertText", { text: texts.at(-1) ?? "" });
    await session.detach();
  };

  const ways: Readonly<Record<string, readonly [expected: string, type: () => Promise<unknown>]>> = {
    "typed over a selection by keys": [
      "xy",
      async () => {
        await page.keyboard.press("Control+a");
        await page.keyboard.type("xy");
      },
    ],
    "typed over a selection of the page": ["x", () => select(true).then(() => page.keyboard.press("x"))],
    "inserted over a selection before its event": [
      "dictated",
      () => select(false).then(() => page.keyboard.insertText("dictated")),
    ],
    "composed over a selection": ["かな", () => select(true).then(() => compose("か", "かな"))],
    "composed over a selection before its event": ["かな", () => select(false).then(() => compose("か", "かな"))],
    "composed over a part": [
      `かな ${styled.slice("SELECT ".length)}`,
      async () => {
        await page.keyboard.press("Home");
        for (const _ of "SELECT") await page.keyboard.press("Shift+ArrowRight");
        await compose("か", "かな");
      },
    ],
  };
  it.each(Object.entries(ways))("text %s gets no style of it", async (_, [expected, type]) => {
    await page.evaluate(`setText(${JSON.stringify(styled)})`);
    await statement().focus();
    await type();
    await page.locator(`main[data-text="${expected}"]`).waitFor();
    expect(await statement().innerText()).toBe(expected);
    expect(faults).toEqual([]);
  });
});
