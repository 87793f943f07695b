import type { Clock } from "@holdfast/common/clock.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { endOf, isBound, type Session, type SessionCode, sessionCodeKind, sessionKind } from "../session/session.ts";
import { type ApiKey, type CredentialUse, credentialUseKind, type Token, tokenKind, type User } from "./credential.ts";
/** Time for which expired tokens remain visible. */
const expiredRetentionMs = 86_400_000;
/** Upper limit of the delay between a use in the memory of another controller and its write to the store. */
const lastUseDelayMs = 10 * 60_000;
const batch = 100;

/** Deletes tokens that expired a day ago, expired sessions and codes, and use records of deleted credentials. */
export async function sweepCredentials(
  deps: {
    readonly store: Store;
    readonly apiKeys: Collection<ApiKey>;
    readonly tokens: Collection<Token>;
    readonly sessions: Collection<Session>;
    readonly sessionCodes: Collection<SessionCode>;
    readonly users: Collection<User>;
    readonly credentialUses: Collection<CredentialUse>;
    readonly clock: Clock;
  },
  signal: AbortSignal,
): Promise<void> {
  const { store, apiKeys, tokens, sessions, sessionCodes, credentialUses, clock } = deps;
  const due: { key: string; modRevision: bigint }[] = [];
  const expiredBefore = clock.now() - expiredRetentionMs;
  for (const { object, modRevision } of tokens.values())
    if ((object.spec.expiresAt ?? Infinity) < expiredBefore)
      due.push({ key: keyOf(tokenKind, object.metadata.id), modRevision });
  const now = clock.now();
  for (const { object, modRevision } of sessions.values()) {
    const { id } = object.metadata;
    const isOver = endOf(object, credentialUses.get(id)?.object.spec.at) <= now - lastUseDelayMs;
    // The collection of users may lag behind the collection of sessions.
    const isNew = object.metadata.createdAt > now - lastUseDelayMs;
    if (isOver || (!isNew && !isBound(object.spec, deps.users.get(object.spec.userId))))
      due.push({ key: keyOf(sessionKind, id), modRevision });
  }
  for (const { object, modRevision } of sessionCodes.values())
    if (object.spec.expiresAt <= now) due.push({ key: keyOf(sessionCodeKind, object.metadata.id), modRevision });
  for (const { object, modRevision } of credentialUses.values()) {
    const { id } = object.metadata;
    if ([apiKeys, tokens, sessions].every((credentials) => credentials.get(id) === undefined))
      due.push({ key: keyOf(credentialUseKind, id), modRevision });
  }
  for (let from = 0; from < due.length; from += batch) {
    const chunk = due.slice(from, from + batch);
    // A conflict leaves the chunk for the next sweep.
    await store.commit({ conditions: chunk, puts: [], deletes: chunk.map(({ key }) => key) }, signal);
  }
}
