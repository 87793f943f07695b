import { readFile } from "node:fs/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { keyOf, type KindName, nameKeyOf, newMetadata, type Resource, root } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import {
  type ApiKey,
  apiKeyKind,
  hashPurposes,
  type Token,
  tokenKind,
  type User,
  userKind,
} from "./credential/credential.ts";
import { type Membership, membershipId, membershipKind } from "./organization/membership.ts";
import { type Organization, organizationKind } from "./organization/organization.ts";

/** The first credentials of an installation, made on the host and handed over in a file that only it can read. */
interface BootstrapFile {
  readonly username: string;
  readonly password: string;
  readonly api_key_id: string;
  readonly api_key_secret: string;
  readonly token: string;
  /** Name of the first organization. */
  readonly organization: string;
}

/**
 * Makes the operator, the first organization with the operator as its owner, and its key and token. Each is made once:
 * an object that was deleted since does not come back with the next start.
 */
export async function bootstrapAccess(
  file: string,
  { store, sealer, clock, newId }: { store: Store; sealer: Sealer; clock: Clock; newId: () => string },
  ownerScopes: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const given: BootstrapFile = JSON.parse(await readFile(file, "utf8"));
  const now = clock.now();
  const organizationId = await firstOrganization(given.organization, store, newId(), now, signal);
  const object = <Spec>(id: string, name: string, spec: Spec): Resource<Spec, Record<string, never>> => ({
    metadata: newMetadata(id, now, { name, organizationId }),
    spec,
    status: {},
  });
  const user: User = object(given.username, given.username, {
    passwordHash: sealer.keyedHash(hashPurposes.password, given.password),
    operator: true,
  });
  const membership: Membership = object(membershipId(organizationId, given.username), given.username, {
    role: "owner",
  });
  const apiKey: ApiKey = object(given.api_key_id, "owner", {
    secretHash: sealer.keyedHash(hashPurposes.apiKey, given.api_key_secret),
    scopes: ownerScopes,
    expiresAt: null,
  });
  const tokenId = sealer.keyedHash(hashPurposes.token, given.token);
  const token: Token = object(tokenId, "owner", { scopes: ownerScopes, expiresAt: null });
  await makeOnce(store, userKind, user, signal);
  if (organizationId !== "") await makeOnce(store, membershipKind, membership, signal);
  await makeOnce(store, apiKeyKind, apiKey, signal);
  await makeOnce(store, tokenKind, token, signal);
}

/** Id of the first organization; empty when it was made once and is gone. */
async function firstOrganization(
  name: string,
  store: Store,
  id: string,
  now: number,
  signal: AbortSignal,
): Promise<string> {
  const nameKey = nameKeyOf(organizationKind, "", name);
  const marker = `${root}/bootstrapped/organization`;
  const before = await store.get(marker, signal);
  if (before !== undefined) return (await store.get(keyOf(organizationKind, before.value), signal)) ? before.value : "";
  const metadata = newMetadata(id, now, { name });
  const organization: Organization = { metadata, spec: { quota: {} }, status: {} };
  const made = await store.commit(
    {
      conditions: [
        { key: nameKey, modRevision: 0n },
        { key: marker, modRevision: 0n },
      ],
      puts: [
        { key: nameKey, value: id },
        { key: marker, value: id },
        { key: keyOf(organizationKind, id), value: JSON.stringify(organization) },
      ],
      deletes: [],
    },
    signal,
  );
  if (made.committed) return id;
  const existing = (await store.get(marker, signal)) ?? (await store.get(nameKey, signal));
  if (existing === undefined) throw new Error(`organization ${name} came and went`);
  await store.commit({ conditions: [], puts: [{ key: marker, value: existing.value }], deletes: [] }, signal);
  return existing.value;
}

/** Puts the object with a mark that it was made; with the mark there already, or the object, nothing but the mark. */
async function makeOnce(
  store: Store,
  kind: KindName,
  object: Resource<unknown, unknown>,
  signal: AbortSignal,
): Promise<void> {
  const key = keyOf(kind, object.metadata.id);
  const marker = { key: `${root}/bootstrapped/${kind.name}/${object.metadata.id}`, value: "made" };
  const none = { key: marker.key, modRevision: 0n };
  const put = { key, value: JSON.stringify(object) };
  const conditions = [{ key, modRevision: 0n }, none];
  const made = await store.commit({ conditions, puts: [put, marker], deletes: [] }, signal);
  if (!made.committed) await store.commit({ conditions: [none], puts: [marker], deletes: [] }, signal);
}
