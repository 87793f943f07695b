import type { ComponentChildren } from "preact";

interface SubmitFormProps {
  readonly class: string;
  /** The reason why the form cannot be sent; undefined if it can. */
  readonly refusal?: string | undefined;
  /** Called for each submit that is not refused, by the button or the Enter key. */
  readonly onSubmit: () => void;
  readonly children: ComponentChildren;
}

/** A form that a function sends. */
export function SubmitForm({ class: className, refusal, onSubmit, children }: SubmitFormProps) {
  return (
    <form
      class={className}
      onSubmit={(event) => {
        event.preventDefault();
        if (refusal === undefined) onSubmit();
      }}
    >
      {children}
    </form>
  );
}
