import { readFile } from "node:fs/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { keyOf, type KindName, nameKeyOf, newMetadata, type Resource, root } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import {
  type ApiKey,
  apiKeyKind,
  bootstrapActor,
  hashPurposes,
  type Token,
  tokenKind,
  type User,
  userKind,
} from "./credential/credential.ts";
import { type Membership, membershipId, membershipKind } from "./organization/membership.ts";
import { type Organization, organizationKind } from "./organization/organization.ts";

/** The first credentials of an installation, generated on the host in a file that only it can read. */
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
 * Creates the operator, the first organization with the operator as owner, and its key and token. Each is created once;
 * an object that was deleted afterwards is not created again by the next start.
 */
export async function bootstrapAccess(
  file: string,
  { store, sealer, clock, newId }: { store: Store; sealer: Sealer; clock: Clock; newId: () => string },
  ownerScopes: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const credentials: BootstrapFile = JSON.parse(await readFile(file, "utf8"));
  const now = clock.now();
  const organizationId = await firstOrganization(credentials.organization, store, newId(), now, signal);
  const object = <Spec>(id: string, name: string, spec: Spec): Resource<Spec, Record<string, never>> => ({
    metadata: newMetadata(id, now, { name, organizationId }),
    spec,
    status: {},
  });
  const user: User = object(credentials.username, credentials.username, {
    passwordHash: sealer.keyedHash(hashPurposes.password, credentials.password),
    operator: true,
  });
  const membership: Membership = object(membershipId(organizationId, credentials.username), credentials.username, {
    role: "owner",
  });
  const apiKey: ApiKey = object(credentials.api_key_id, "owner", {
    secretHash: sealer.keyedHash(hashPurposes.apiKey, credentials.api_key_secret),
    scopes: ownerScopes,
    expiresAt: null,
    createdBy: bootstrapActor,
  });
  const tokenId = sealer.keyedHash(hashPurposes.token, credentials.token);
  const token: Token = object(tokenId, "owner", { scopes: ownerScopes, expiresAt: null });
  await createOnce(store, userKind, user, signal);
  if (organizationId !== "") await createOnce(store, membershipKind, membership, signal);
  await createOnce(store, apiKeyKind, apiKey, signal);
  await createOnce(store, tokenKind, token, signal);
}

/** Creates the first organization and returns its id; empty if it was created earlier and then deleted. */
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
  const outcome = await store.commit(
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
  if (outcome.committed) return id;
  const existing = (await store.get(marker, signal)) ?? (await store.get(nameKey, signal));
  if (existing === undefined) throw new Error(`organization ${name} was created and deleted concurrently`);
  await store.commit({ conditions: [], puts: [{ key: marker, value: existing.value }], deletes: [] }, signal);
  return existing.value;
}

/** Creates the object and a marker in one transaction. If the marker or the object exists, only ensures the marker. */
async function createOnce(
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
  const outcome = await store.commit({ conditions, puts: [put, marker], deletes: [] }, signal);
  if (!outcome.committed) await store.commit({ conditions: [none], puts: [marker], deletes: [] }, signal);
}
