import { useEffect, useRef, useState } from "preact/hooks";
import { ConnectionFailed, ValidationFailed } from "@holdfast/sdk/errors.ts";
import { currentAddress } from "../router/location.ts";
import { hasSessionEnded } from "../session/account.ts";
import { editedOf, faultOf, refusedText } from "./form-values.ts";
import { retainInput, takeInput } from "./retained-input.ts";

/** The input of a form with its faults. */
export interface Form<V> {
  /** The user's input, and for the other fields the initial values as they are now. */
  readonly values: V;
  readonly isBusy: boolean;
  /** An error that belongs to no field. */
  readonly error: unknown;
  /** The faults of fields for the place of the button; undefined without one. Read it after the fields. */
  readonly refused: string | undefined;
  set<K extends keyof V>(name: K, value: V[K]): void;
  /** Value, fault and change of a text, for its field; `of` is its name in the request. */
  field<K extends TextName<V>>(
    name: K,
    of?: string,
  ): { readonly value: string; readonly fault: string | undefined; readonly onInput: (value: string) => void };
  /** The fault of a field of the request, such as "name" or "tags.env". */
  fault(field: string): string | undefined;
  /**
   * Sends the form once, even if it is submitted several times. A submit after a request without a response has the
   * same Idempotency-Key, so the change is made once. A change of a resource sends the edited fields alone: others may
   * have been changed by another client.
   */
  submit(send: Send<V>): void;
}

/** Sends a form: its values, and those that the user has edited. */
export type Send<V> = (values: V, idempotencyKey: string, edited: Partial<V>) => Promise<void>;

/** Names of the members that are texts. */
type TextName<V> = { [K in keyof V & string]: V[K] extends string ? K : never }[keyof V & string];

interface FormOptions {
  /** Name of the unsaved input in the browser's storage, which a reload restores; absent for input with secrets. */
  readonly draft?: string;
  /** True for a form whose input is used again after it was sent. */
  readonly retainsDraft?: boolean;
}

/** A form. Fields that the user has not edited follow `initial`, such as after a change by another client. */
export function useForm<V extends object>(initial: V, { draft, retainsDraft = false }: FormOptions = {}): Form<V> {
  const text = JSON.stringify(initial);
  const [form] = useState(() => `${currentAddress.value.path} ${text}`);
  const [input, setInput] = useState<Partial<V>>(() => ({ ...readDraft(draft), ...takeInput(form) }));
  const newest = useRef({ initial, input });
  newest.current = { initial, input };
  useEffect(() => setInput((before) => editedOf(initial, before)), [text]);
  useEffect(
    () => () => {
      if (hasSessionEnded()) retainInput(form, newest.current.input);
    },
    [],
  );
  const values: V = { ...initial, ...input };
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const attempt = useRef<{ key: string; input: string } | undefined>(undefined);
  const fields = error instanceof ValidationFailed ? error.fields : [];
  const set = <K extends keyof V>(name: K, value: V[K]) =>
    setInput((before) => {
      const after = editedOf(newest.current.initial, { ...before, [name]: value });
      writeDraft(draft, after);
      return after;
    });
  /** Names in the request of the fields of this form. */
  const fieldNames = new Set<string>();
  const fault = (field: string) => {
    fieldNames.add(field);
    return faultOf(fields, field);
  };
  return {
    values,
    isBusy,
    error: fields.length > 0 ? undefined : error,
    get refused() {
      return refusedText(fields, [...fieldNames]);
    },
    set,
    field: (name, of = name) => ({
      value: String(values[name]),
      fault: fault(of),
      onInput: (value) => set(name, value as V[typeof name]),
    }),
    fault,
    submit(send) {
      if (isBusy) return;
      const sent = JSON.stringify(values);
      if (attempt.current?.input !== sent) attempt.current = { key: crypto.randomUUID(), input: sent };
      const host = document.activeElement?.closest("form") ?? null;
      setBusy(true);
      setError(undefined);
      send(values, attempt.current.key, editedOf(initial, input))
        .then(
          () => {
            attempt.current = undefined;
            if (!retainsDraft) writeDraft(draft, undefined);
          },
          (failure: unknown) => {
            // Without a response the change may have been made: the next submit repeats the request.
            if (!(failure instanceof ConnectionFailed)) attempt.current = undefined;
            setError(failure);
            if (failure instanceof ValidationFailed) focusFault(host);
          },
        )
        .finally(() => setBusy(false));
    },
  };
}

/** Focuses the first refused field of a form, which may be far above its button. */
function focusFault(form: Element | null): void {
  requestAnimationFrame(() =>
    requestAnimationFrame(() => form?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()),
  );
}

function readDraft(name: string | undefined): object {
  const text = name === undefined ? null : sessionStorage.getItem(`draft ${name}`);
  return text === null ? {} : (JSON.parse(text) as object);
}

function writeDraft(name: string | undefined, values: object | undefined): void {
  if (name === undefined) return;
  if (values === undefined) sessionStorage.removeItem(`draft ${name}`);
  else sessionStorage.setItem(`draft ${name}`, JSON.stringify(values));
}
