import { Button } from "../parts/button.tsx";
import { TextField } from "../parts/field.tsx";
import { FormFaults } from "../parts/form-faults.tsx";
import { SubmitForm } from "../parts/submit-form.tsx";
import { useForm } from "../parts/use-form.ts";
import { type SetUp, signInFirst } from "./account.ts";
import { SignInFrame } from "./sign-in-frame.tsx";

/** The form that sets the first password of a user, and signs them in. */
export function SetUpPage({ setUp }: { readonly setUp: SetUp }) {
  const form = useForm({ password: "", repeated: "" });
  const { password, repeated } = form.values;
  const differs = repeated !== "" && repeated !== password ? "Is another text than the password." : undefined;
  const refusal = password === "" || repeated === "" ? "Enter the password twice." : differs;
  return (
    <SignInFrame title="Set your password">
      <SubmitForm
        class="body stack"
        refusal={refusal}
        onSubmit={() => form.submit((input) => signInFirst(setUp, input.password))}
      >
        <h1>Set your password</h1>
        <p class="quiet">
          You were added as <b>{setUp.username}</b>. You sign in with this user name and the password that you set here.
        </p>
        <input type="hidden" autocomplete="username" value={setUp.username} />
        <TextField
          label="Password"
          help="At least 12 characters"
          type="password"
          {...form.field("password")}
          autocomplete="new-password"
        />
        <TextField
          label="Password, again"
          type="password"
          {...form.field("repeated")}
          fault={differs}
          autocomplete="new-password"
        />
        <FormFaults form={form} />
        <Button kind="primary" type="submit" busy={form.isBusy} refusal={refusal}>
          Set password
        </Button>
      </SubmitForm>
    </SignInFrame>
  );
}
