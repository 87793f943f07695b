import { RateLimited, Unauthenticated } from "@holdfast/sdk/errors.ts";
import { Button } from "../parts/button.tsx";
import { TextField } from "../parts/field.tsx";
import { ErrorNotice, Notice } from "../parts/notice.tsx";
import { SubmitForm } from "../parts/submit-form.tsx";
import { useForm } from "../parts/use-form.ts";
import { signIn } from "./account.ts";
import { SignInFrame } from "./sign-in-frame.tsx";

/** The form that signs a user in by user name and password. The address remains, so the requested page follows. */
export function SignInPage({ notice }: { readonly notice: string | undefined }) {
  const form = useForm({ username: "", password: "" });
  const { error } = form;
  return (
    <SignInFrame title="Sign in">
      <SubmitForm
        class="body stack"
        onSubmit={() => form.submit(({ username, password }) => signIn(username, password))}
      >
        <h1>Sign in</h1>
        {notice !== undefined && error === undefined && <Notice>{notice}</Notice>}
        {error instanceof Unauthenticated ? (
          <Notice tone="bad">The user name or the password is wrong.</Notice>
        ) : error instanceof RateLimited ? (
          <Notice tone="bad">There were too many attempts. Wait a minute and try again.</Notice>
        ) : (
          <ErrorNotice error={error} />
        )}
        <TextField label="User name" {...form.field("username")} autocomplete="username" required />
        <TextField
          label="Password"
          type="password"
          {...form.field("password")}
          autocomplete="current-password"
          required
        />
        <Button kind="primary" type="submit" busy={form.isBusy}>
          Sign in
        </Button>
      </SubmitForm>
    </SignInFrame>
  );
}
