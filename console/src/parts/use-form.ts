import { useRef, useState } from "preact/hooks";
import { ConnectionFailed, type FieldFault, ValidationFailed } from "@holdfast/sdk/errors.ts";

/** The input of a form with its faults. */
export interface Form<V> {
  readonly values: V;
  readonly isBusy: boolean;
  /** An error that belongs to no field. */
  readonly error: unknown;
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
   * same Idempotency-Key, so the change is made once.
   */
  submit(send: (values: V, idempotencyKey: string) => Promise<void>): void;
}

/** Names of the members that are texts. */
type TextName<V> = { [K in keyof V & string]: V[K] extends string ? K : never }[keyof V & string];

interface FormOptions {
  /** Name of the unsaved input in the browser's storage, which a reload restores; absent for input with secrets. */
  readonly draft?: string;
  /** True for a form whose input is used again after it was sent. */
  readonly retainsDraft?: boolean;
}

export function useForm<V extends object>(initial: V, { draft, retainsDraft = false }: FormOptions = {}): Form<V> {
  const [values, setValues] = useState<V>(() => ({ ...initial, ...readDraft(draft) }));
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const attempt = useRef<{ key: string; input: string } | undefined>(undefined);
  const fields = error instanceof ValidationFailed ? error.fields : [];
  const set = <K extends keyof V>(name: K, value: V[K]) =>
    setValues((before) => {
      const after = { ...before, [name]: value };
      writeDraft(draft, after);
      return after;
    });
  return {
    values,
    isBusy,
    error: fields.length > 0 ? undefined : error,
    set,
    field: (name, of = name) => ({
      value: String(values[name]),
      fault: faultOf(fields, of),
      onInput: (value) => set(name, value as V[typeof name]),
    }),
    fault: (field) => faultOf(fields, field),
    submit(send) {
      if (isBusy) return;
      const input = JSON.stringify(values);
      if (attempt.current?.input !== input) attempt.current = { key: crypto.randomUUID(), input };
      setBusy(true);
      setError(undefined);
      send(values, attempt.current.key)
        .then(
          () => {
            attempt.current = undefined;
            if (!retainsDraft) writeDraft(draft, undefined);
          },
          (failure: unknown) => {
            // Without a response the change may have been made: the next submit repeats the request.
            if (!(failure instanceof ConnectionFailed)) attempt.current = undefined;
            setError(failure);
          },
        )
        .finally(() => setBusy(false));
    },
  };
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

/** The faults of a field and of its members, as one sentence; undefined without any. */
export function faultOf(faults: readonly FieldFault[], field: string): string | undefined {
  const matching = faults.filter(
    ({ field: of }) => of === field || of.startsWith(`${field}.`) || of.startsWith(`${field}[`),
  );
  if (matching.length === 0) return undefined;
  return matching.map(({ field: of, detail }) => (of === field ? sentence(detail) : `${of} ${detail}.`)).join(" ");
}

function sentence(detail: string): string {
  return `${detail.charAt(0).toUpperCase()}${detail.slice(1)}.`;
}
