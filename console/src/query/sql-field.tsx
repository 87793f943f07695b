import { useEffect, useRef, useState } from "preact/hooks";
import { TextField } from "../parts/field.tsx";
import type { SqlDialect } from "../services/engines/console-engine.ts";
import type { CodeEditor, Schema } from "./code-editor.ts";

interface SqlFieldProps {
  readonly value: string;
  /** A text that replaces the editor's text: a new object for each replacement. */
  readonly replacement: { readonly text: string };
  readonly onInput: (text: string) => void;
  readonly onRun: () => void;
  readonly dialect: SqlDialect;
  /** Requests the names that the editor completes, when it is focused first. */
  readonly loadSchema: () => Promise<Schema>;
  readonly fault: string | undefined;
}

const label = "Statement";
const help = "Ctrl+Enter runs it, Ctrl+Space completes a name";

/** An editor of SQL. Its code is loaded when it is opened; a plain field is there until then, and if that fails. */
export function SqlField({ value, replacement, onInput, onRun, dialect, loadSchema, fault }: SqlFieldProps) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<CodeEditor>(undefined);
  const newest = useRef({ value, onInput, onRun });
  newest.current = { value, onInput, onRun };
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    let isClosed = false;
    import("./code-editor.ts").then(
      ({ createCodeEditor }) => {
        if (host.current === null || isClosed) return;
        editor.current = createCodeEditor(host.current, {
          text: newest.current.value,
          dialect,
          label,
          description: help,
          onChange: (text) => newest.current.onInput(text),
          onRun: () => newest.current.onRun(),
        });
        setOpen(true);
      },
      () => undefined,
    );
    return () => {
      isClosed = true;
      editor.current?.close();
      editor.current = undefined;
    };
  }, [dialect]);
  const isRequested = useRef(false);
  const requestSchema = () => {
    if (isRequested.current) return;
    isRequested.current = true;
    loadSchema().then(
      (schema) => editor.current?.setSchema(schema),
      // Without names the editor completes keywords.
      () => undefined,
    );
  };
  useEffect(() => editor.current?.setText(replacement.text), [replacement]);
  return (
    <div class="field">
      {isOpen ? <span class="label">{label}</span> : <TextField label={label} lines value={value} onInput={onInput} />}
      <div ref={host} class="code-editor" hidden={!isOpen} onFocusIn={requestSchema} />
      <p class="quiet small">{help}</p>
      <p class="fault" aria-live="polite" hidden={fault === undefined}>
        {fault}
      </p>
    </div>
  );
}
