import { render } from "preact";
import { useEffect } from "preact/hooks";
import { followChanges } from "./live/changes.ts";
import { Toasts } from "./parts/toasts.tsx";
import { Loading } from "./parts/parts.tsx";
import { pages } from "./pages.tsx";
import { followLinks, currentAddress } from "./router/location.ts";
import { matchRoute } from "./router/match.ts";
import { type Account, signInState, start } from "./session/account.ts";
import { SetUpPage } from "./session/set-up-page.tsx";
import { SignInPage } from "./session/sign-in-page.tsx";
import { MissingPage } from "./shell/missing-page.tsx";
import { Shell } from "./shell/shell.tsx";
import { applyTheme } from "./shell/theme.ts";

function App() {
  const state = signInState.value;
  if (state.kind === "loading")
    return (
      <main class="no-script" id="content">
        <Loading />
      </main>
    );
  if (state.kind === "set-up") return <SetUpPage setUp={state.setUp} />;
  if (state.kind === "signed-out") return <SignInPage notice={state.notice} />;
  return <SignedIn account={state.account} />;
}

function SignedIn({ account }: { readonly account: Account }) {
  const organization = account.me.organization_id ?? "";
  useEffect(() => {
    const ending = new AbortController();
    followChanges(account.client, organization, ending.signal);
    return () => ending.abort();
  }, [account]);
  const found = matchRoute(pages, currentAddress.value.path);
  return (
    <Shell>
      <div key={organization} class="stack" data-gap="l">
        {found === undefined ? <MissingPage /> : found.page(found.variables)}
      </div>
    </Shell>
  );
}

applyTheme();
followLinks();
const root = document.querySelector("#console");
if (root === null) throw new Error("the page has no element for the console");
render(
  <>
    <App />
    <Toasts />
  </>,
  root,
);
start().catch((error: unknown) => globalThis.reportError(error));
