import { computed, signal } from "@preact/signals";
import { type Client, createClient } from "@holdfast/sdk/client.ts";
import { ConnectionFailed, Unauthenticated, Unavailable } from "@holdfast/sdk/errors.ts";
import type { CurrentSession, Me } from "@holdfast/sdk/responses.ts";
import { createTransport, type Transport, type TransportOptions } from "@holdfast/sdk/transport.ts";
import { takeCode } from "./code.ts";
import { missingScope } from "./rights.ts";

/** The person of the page, with clients of the API that act in an organization. */
export interface Account {
  readonly session: CurrentSession;
  readonly me: Me;
  readonly client: Client;
  /** For requests that no method of the client has. */
  readonly transport: Transport;
}

export type SignInState =
  | { readonly kind: "loading" }
  | { readonly kind: "signed-out"; readonly notice?: string }
  | { readonly kind: "signed-in"; readonly account: Account };

export const signInState = signal<SignInState>({ kind: "loading" });

/** Since when the API does not answer; undefined while it does. */
export const awaySince = signal<number | undefined>(undefined);

/** The account; only pages of a signed-in person read it. */
export const account = computed<Account>(() => {
  if (signInState.value.kind !== "signed-in") throw new Error("nobody is signed in");
  return signInState.value.account;
});

const baseUrl = globalThis.location?.origin ?? "https://localhost";

/** Records whether the API answers, and the end of the session. */
const observedFetch: typeof fetch = async (input, init) => {
  try {
    const response = await globalThis.fetch(input, init);
    awaySince.value = response.status === 503 ? (awaySince.value ?? Date.now()) : undefined;
    if (response.status === 401 && signInState.value.kind === "signed-in")
      signInState.value = { kind: "signed-out", notice: "Your session has ended. Sign in to go on." };
    return response;
  } catch (error) {
    if (init?.signal?.aborted !== true) awaySince.value ??= Date.now();
    throw error;
  }
};

function optionsOf(csrfToken: string | undefined, organization?: string): TransportOptions {
  const credentials = csrfToken === undefined ? {} : { credentials: { kind: "session", csrfToken } as const };
  return { baseUrl, fetch: observedFetch, ...credentials, ...(organization !== undefined && { organization }) };
}

const organizationKey = "organization";

/** Signs in with the code of the address, or finds the session of the cookie. */
export async function start(): Promise<void> {
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

/** Acts in another organization of the person. */
export async function chooseOrganization(id: string): Promise<void> {
  globalThis.localStorage.setItem(organizationKey, id);
  await enter(account.value.session);
}

/** Ends the session, or each session of the person. */
export async function signOut(which: "current" | "all"): Promise<void> {
  const { sessions } = account.value.client;
  await (which === "all" ? sessions.delete("all") : sessions.deleteCurrent());
  signInState.value = { kind: "signed-out" };
}

async function enter(session: CurrentSession): Promise<void> {
  const stored = globalThis.localStorage.getItem(organizationKey);
  const chosen = session.organizations.find(({ id }) => id === stored) ?? session.organizations[0];
  const options = optionsOf(session.csrf_token, session.organization_id ?? chosen?.id);
  const client = createClient(options);
  const me = await client.me();
  signInState.value = { kind: "signed-in", account: { session, me, client, transport: createTransport(options) } };
}

/** Why the person may not call a method with the scope; undefined when they may. */
export function refusalOf(scope: string): string | undefined {
  return missingScope(account.value.me.scopes, scope);
}

function reportError(error: unknown): void {
  globalThis.reportError(error);
}
