import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Card } from "../parts/parts.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { account, signIn } from "../session/account.ts";

/** A form for another password of the user. Sessions of the former one end, so this browser signs in again. */
export function PasswordCard() {
  const form = useForm({ former: "", next: "", repeated: "" });
  const { next, repeated } = form.values;
  const differs = repeated !== "" && repeated !== next ? "Is another text than the new password." : undefined;
  return (
    <Card title="Your password">
      <FormBody
        form={form}
        action="Change password"
        refusal={next === "" || repeated === "" ? "Enter the new password twice." : differs}
        send={async (input) => {
          const { client, me } = account.value;
          await client.users.changePassword(input.former, input.next);
          for (const name of ["former", "next", "repeated"] as const) form.set(name, "");
          await signIn(me.name, input.next);
          showToast("good", "Changed: your other sessions have ended");
        }}
      >
        <p class="quiet">Your sessions in other browsers end; this browser signs in again with the new password.</p>
        <input type="hidden" autocomplete="username" value={account.value.me.name} />
        <TextField
          label="Current password"
          type="password"
          {...form.field("former", "current_password")}
          autocomplete="current-password"
        />
        <div class="halves">
          <TextField
            label="New password"
            help="At least 12 characters"
            type="password"
            {...form.field("next", "new_password")}
            autocomplete="new-password"
          />
          <TextField
            label="New password, again"
            type="password"
            {...form.field("repeated")}
            fault={differs}
            autocomplete="new-password"
          />
        </div>
      </FormBody>
    </Card>
  );
}
