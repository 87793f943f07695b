import { computed, signal } from "@preact/signals";
import { type Client, createClient } from "@holdfast/sdk/client.ts";
import { ConnectionFailed, Unauthenticated, Unavailable } from "@holdfast/sdk/errors.ts";
import { parseExactly } from "@holdfast/sdk/exact-json.ts";
import type { CurrentSession, Me } from "@holdfast/sdk/responses.ts";
import { retainInputOf } from "../parts/retained-input.ts";
import { createTransport, type Transport, type TransportOptions } from "@holdfast/sdk/transport.ts";

/** The signed-in user, with clients of the API that act in an organization. */
export interface Account {
  readonly session: CurrentSession;
  readonly me: Me;
  readonly client: Client;
  /** Sends requests that no method of the client sends. */
  readonly transport: Transport;
}

/** The first password of a user, or the next one after a reset: the user sets it with a token. */
export interface SetUp {
  readonly username: string;
  readonly token: string;
}

export type SignInState =
  | { readonly kind: "loading" }
  | { readonly kind: "signed-out"; readonly notice?: string; readonly hasEnded?: true }
  | { readonly kind: "set-up"; readonly setUp: SetUp }
  | { readonly kind: "signed-in"; readonly account: Account };

export const signInState = signal<SignInState>({ kind: "loading" });

/** Time in milliseconds since 1970 since which the API does not respond; undefined while it responds. */
export const unreachableSince = signal<number | undefined>(undefined);

/** The account of the signed-in user; pages read it only while a user is signed in. */
export const account = computed<Account>(() => {
  if (signInState.value.kind !== "signed-in") throw new Error("no user is signed in");
  return signInState.value.account;
});

/** True if the session has ended while the user was signed in, without a sign-out in this page. */
export function hasSessionEnded(): boolean {
  return signInState.value.kind === "signed-out" && signInState.value.hasEnded === true;
}

const baseUrl = globalThis.location?.origin ?? "https://localhost";

/** A fetch that records whether the API responds, and signs the user out when the session has ended. */
const observedFetch: typeof fetch = async (input, init) => {
  try {
    const response = await globalThis.fetch(input, init);
    unreachableSince.value = response.status === 503 ? (unreachableSince.value ?? Date.now()) : undefined;
    if (response.status === 401 && signInState.value.kind === "signed-in")
      signInState.value = {
        kind: "signed-out",
        notice: "Your session has ended. Sign in to continue.",
        hasEnded: true,
      };
    return response;
  } catch (error) {
    if (init?.signal?.aborted !== true) unreachableSince.value ??= Date.now();
    throw error;
  }
};

function optionsOf(csrfToken: string | undefined, organization?: string): TransportOptions {
  const credentials = csrfToken === undefined ? {} : { credentials: { kind: "session", csrfToken } as const };
  return {
    baseUrl,
    fetch: observedFetch,
    parse: parseExactly,
    ...credentials,
    ...(organization !== undefined && { organization }),
  };
}

const organizationKey = "organization";

/** Signs in with the code of the address, or finds the session of the cookie. */
export async function start(): Promise<void> {
  const setUp = takeSetUp(globalThis.location, globalThis.history);
  if (setUp !== undefined) {
    signInState.value = { kind: "set-up", setUp };
    return;
  }
  const code = takeCode(globalThis.location, globalThis.history);
  try {
    const { sessions } = createClient(optionsOf(undefined));
    await enter(await (code === undefined ? sessions.current() : sessions.create({ code })));
  } catch (error) {
    if (error instanceof ConnectionFailed || error instanceof Unavailable) {
      setTimeout(() => {
        start().catch(reportError);
      }, 2_000);
      return;
    }
    const notice = code === undefined ? {} : { notice: "The link was used or is too old. Run holdfast console again." };
    signInState.value = { kind: "signed-out", ...notice };
    if (!(error instanceof Unauthenticated)) reportError(error);
  }
}

export async function signIn(username: string, password: string): Promise<void> {
  await enter(await createClient(optionsOf(undefined)).sessions.create({ username, password }));
}

/** Sets the password of a user who has a token for it, and signs them in. */
export async function signInFirst({ username, token }: SetUp, password: string): Promise<void> {
  await createClient(optionsOf(undefined)).users.setUp(token, password);
  await signIn(username, password);
}

/** Requests the session again after a change of the user's organizations. */
export async function reloadSession(): Promise<void> {
  await enter(await account.value.client.sessions.current());
}

/** Switches to another organization of the user. */
export async function chooseOrganization(id: string): Promise<void> {
  globalThis.localStorage.setItem(organizationKey, id);
  await enter(account.value.session);
}

/** Ends the session, or all sessions of the user. */
export async function signOut(which: "current" | "all"): Promise<void> {
  const { sessions } = account.value.client;
  await (which === "all" ? sessions.delete("all") : sessions.deleteCurrent());
  retainInputOf(undefined);
  signInState.value = { kind: "signed-out" };
}

async function enter(session: CurrentSession): Promise<void> {
  const stored = globalThis.localStorage.getItem(organizationKey);
  const chosen = session.organizations.find(({ id }) => id === stored) ?? session.organizations[0];
  const options = optionsOf(session.csrf_token, session.organization_id ?? chosen?.id);
  const client = createClient(options);
  const me = await client.me();
  retainInputOf(me.name);
  signInState.value = { kind: "signed-in", account: { session, me, client, transport: createTransport(options) } };
}

/** Reason why the user may not call a method with the scope; undefined if they may. */
export function refusalOf(scope: string): string | undefined {
  return missingScope(account.value.me.scopes, scope);
}

function reportError(error: unknown): void {
  globalThis.reportError(error);
}

/**
 * The one-time code in the fragment of the address, which `holdfast console` opens. It is removed from the address and
 * the history before anything is sent.
 */
export function takeCode(
  location: Pick<Location, "hash" | "pathname" | "search">,
  history: Pick<History, "replaceState">,
): string | undefined {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code === null) return undefined;
  history.replaceState(null, "", `${location.pathname}${location.search}`);
  return code;
}

/** The address of the page on which a user sets the first password. Browsers do not send its fragment. */
export function setUpLink({ username, token }: SetUp): string {
  return `${baseUrl}/console/#${new URLSearchParams({ set_up: token, user: username }).toString()}`;
}

/** The token of such an address, which is removed from the address and the history before anything is sent. */
export function takeSetUp(
  location: Pick<Location, "hash" | "pathname" | "search">,
  history: Pick<History, "replaceState">,
): SetUp | undefined {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const [token, username] = [fragment.get("set_up"), fragment.get("user")];
  if (token === null || username === null) return undefined;
  history.replaceState(null, "", `${location.pathname}${location.search}`);
  return { username, token };
}

/** Reason why a caller with these scopes may not call a method of the scope; undefined if it may. */
export function missingScope(scopes: readonly string[], scope: string): string | undefined {
  const [area = ""] = scope.split(":");
  if (scope === "public" || scope === "signed-in" || scopes.includes(scope) || scopes.includes(`${area}:*`))
    return undefined;
  return `Your role lacks the scope ${scope}.`;
}
