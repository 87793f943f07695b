import { RateLimited, Unauthenticated } from "@holdfast/sdk/errors.ts";
import { Button } from "../parts/button.tsx";
import { TextField } from "../parts/field.tsx";
import { ErrorNotice, Notice } from "../parts/notice.tsx";
import { useForm } from "../parts/use-form.ts";
import { signIn } from "./account.ts";
import { SignInFrame } from "./sign-in-frame.tsx";

/** The form that signs a user in by user name and password. The address remains, so the requested page follows. */
export function SignInPage({ notice }: { readonly notice: string | undefined }) {
  const form = useForm({ username: "", password: "" });
  const { error } = form;
  return (
    <SignInFrame title="Sign in">
      <form
        class="body stack"
        onSubmit={(event) => {
          event.preventDefault();
          form.submit(({ username, password }) => signIn(username, password));
        }}
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
        <TextField
          label="User name"
          value={form.values.username}
          onInput={(value) => form.set("username", value)}
          fault={form.fault("username")}
          autocomplete="username"
          required
        />
        <TextField
          label="Password"
          type="password"
          value={form.values.password}
          onInput={(value) => form.set("password", value)}
          fault={form.fault("password")}
          autocomplete="current-password"
          required
        />
        <Button kind="primary" type="submit" busy={form.isBusy}>
          Sign in
        </Button>
      </form>
    </SignInFrame>
  );
}
