import type { ComponentChildren } from "preact";
import { Button } from "./button.tsx";
import type { IconName } from "./icon.tsx";
import { FormFaults } from "./form-faults.tsx";
import { SubmitForm } from "./submit-form.tsx";
import type { Form, Send } from "./use-form.ts";

interface FormBodyProps<V extends object> {
  readonly form: Form<V>;
  /** Text of the button. */
  readonly action: string;
  readonly icon?: IconName;
  readonly kind?: "primary" | "normal";
  readonly refusal?: string | undefined;
  readonly send: Send<V>;
  readonly children: ComponentChildren;
}

/** A form in a card: its fields, an error that belongs to no field, and its button. */
export function FormBody<V extends object>({ form, action, send, children, ...button }: FormBodyProps<V>) {
  return (
    <SubmitForm class="stack" refusal={button.refusal} onSubmit={() => form.submit(send)}>
      {children}
      <FormFaults form={form} />
      <div class="row">
        <Button {...button} type="submit" busy={form.isBusy}>
          {action}
        </Button>
      </div>
    </SubmitForm>
  );
}
