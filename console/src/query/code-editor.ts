import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { MySQL, PostgreSQL, sql, StandardSQL } from "@codemirror/lang-sql";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { SqlDialect } from "../services/engines/console-engine.ts";

const dialects = { PostgreSQL, MySQL, StandardSQL };

/** Columns by table, which the editor completes. */
export type Schema = Readonly<Record<string, readonly string[]>>;

interface EditorOptions {
  readonly text: string;
  readonly dialect: SqlDialect;
  readonly label: string;
  /** Id of the help, in the document of the host. */
  readonly description: string;
  readonly onChange: (text: string) => void;
  readonly onRun: () => void;
}

/** An editor of one statement. */
export interface CodeEditor {
  setText(text: string): void;
  setSchema(schema: Schema): void;
  close(): void;
}

const look = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "0.8125rem", borderRadius: "inherit" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", minHeight: "9rem", maxHeight: "24rem", lineHeight: "1.6" },
  ".cm-content": { caretColor: "var(--text)", padding: "0.5rem 0" },
  ".cm-gutters": { backgroundColor: "var(--surface-2)", color: "var(--text-2)", border: "none" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-selectionBackground, &.cm-focused .cm-selectionBackground": { backgroundColor: "var(--surface-3) !important" },
  ".cm-tooltip": {
    backgroundColor: "var(--surface)",
    color: "var(--text)",
    border: "1px solid var(--line)",
    borderRadius: "6px",
    boxShadow: "var(--shadow-2)",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent-fill)", color: "var(--on-accent)" },
});

const colors = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--warn)" },
  { tag: tags.comment, color: "var(--text-2)", fontStyle: "italic" },
  { tag: tags.typeName, color: "var(--series-3)" },
]);

/**
 * Replaces selected text in place of the browser, which would give the new text the style of the selection, as an
 * attribute that the policy of the page refuses and reports.
 */
const replaceSelection = EditorView.domEventHandlers({
  beforeinput(event, view) {
    if (event.inputType !== "insertText" || event.data === null || event.isComposing) return false;
    const { from, to } = selectionOf(view);
    if (from === to) return false;
    const changes = { from, to, insert: event.data };
    const selection = { anchor: from + event.data.length };
    view.dispatch({ changes, selection, userEvent: "input.type", scrollIntoView: true });
    return true;
  },
  // The browser inserts the text of a composition itself, so the selection is deleted before.
  compositionstart(_, view) {
    const { from, to } = selectionOf(view);
    if (from !== to) view.dispatch({ changes: { from, to }, selection: { anchor: from }, userEvent: "input.type" });
    return false;
  },
});

/**
 * The selected text of the page. The editor's state gets a new selection by an event, which can be later than the input
 * that replaces the selection. Browsers whose shadow roots report no selection have the one of the state.
 */
function selectionOf(view: EditorView): { readonly from: number; readonly to: number } {
  const root: DocumentOrShadowRoot & { getSelection?(): Selection | null } = view.root;
  const { anchorNode, anchorOffset = 0, focusNode, focusOffset = 0 } = root.getSelection?.() ?? {};
  const isInEditor = (node: Node | null | undefined): node is Node =>
    node instanceof Node && view.contentDOM.contains(node);
  if (!isInEditor(anchorNode) || !isInEditor(focusNode)) return view.state.selection.main;
  const [anchor, head] = [view.posAtDOM(anchorNode, anchorOffset), view.posAtDOM(focusNode, focusOffset)];
  return { from: Math.min(anchor, head), to: Math.max(anchor, head) };
}

/**
 * Creates an editor in a shadow root below `host`. In the document itself its styles would be an element, which the
 * policy of the page refuses; a shadow root adopts style sheets.
 */
export function createCodeEditor(host: HTMLElement, options: EditorOptions): CodeEditor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const language = new Compartment();
  const dialect = dialects[options.dialect];
  const languageFor = (schema: Schema) => sql({ dialect, schema, upperCaseKeywords: true });
  const run = () => {
    options.onRun();
    return true;
  };
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        keymap.of([{ key: "Mod-Enter", run }]),
        lineNumbers(),
        history(),
        autocompletion({ activateOnTyping: true }),
        language.of(languageFor({})),
        syntaxHighlighting(colors),
        keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({
          "aria-label": options.label,
          "aria-description": options.description,
          // Checks of accessibility do not know that editable content has the focus of its scrolled parent.
          tabindex: "0",
        }),
        EditorView.updateListener.of(({ docChanged, state }) => {
          if (docChanged) options.onChange(state.doc.toString());
        }),
        replaceSelection,
        look,
      ],
    }),
  });
  return {
    setText(text) {
      if (view.state.doc.toString() === text) return;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    },
    setSchema: (schema) => view.dispatch({ effects: language.reconfigure(languageFor(schema)) }),
    close: () => view.destroy(),
  };
}
