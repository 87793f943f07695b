import { ErrorNotice } from "./notice.tsx";
import type { Form } from "./use-form.ts";

/** The faults of a refused form beside its button: its error, or those of fields, also of fields that it lacks. */
export function FormFaults<V extends object>({ form }: { readonly form: Pick<Form<V>, "error" | "refused"> }) {
  const { error, refused } = form;
  return (
    <>
      <ErrorNotice error={error} />
      {refused !== undefined && (
        <p class="refused small" role="alert">
          {refused}
        </p>
      )}
    </>
  );
}
