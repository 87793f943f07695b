import { CheckField, TextField } from "../parts/field.tsx";
import type { Form } from "../parts/use-form.ts";
import type { QueueInput } from "./queue-view.ts";

/** The fields of a queue's settings. */
export function QueueFields({ form }: { readonly form: Form<QueueInput> }) {
  return (
    <>
      <div class="halves">
        <TextField
          label="Visibility timeout in seconds"
          help="Time for which a claimed message is not delivered to another worker"
          type="number"
          {...form.field("timeout", "visibility_timeout_seconds")}
        />
        <TextField
          label="Attempts"
          help="Number of deliveries before a message is dead"
          type="number"
          {...form.field("attempts", "max_attempts")}
        />
      </div>
      <CheckField
        label="Retain dead messages for 14 days"
        checked={form.values.hasDead}
        onInput={(hasDead) => form.set("hasDead", hasDead)}
      />
    </>
  );
}
