import { createHash, generateKeyPairSync } from "node:crypto";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { keyOf, newMetadata, type Resource } from "#kernel/store/resource.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";

/** The installation's account at one authority. */
export type AcmeAccountObject = Resource<{ readonly sealedKey: string }, Readonly<Record<string, never>>>;

export const acmeAccountKind = defineKind<AcmeAccountObject>("acme-account");

export interface AcmeAccountDeps {
  readonly accounts: Pick<Collection<AcmeAccountObject>, "getCurrent">;
  readonly directoryUrl: string;
  readonly sealer: Sealer;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
}

/**
 * The private key of the installation's account, PEM. It is stored before its first use, so that all controllers have
 * the same account.
 */
export async function accountKeyOf({ accounts, directoryUrl, sealer, begin, clock }: AcmeAccountDeps): Promise<string> {
  const id = createHash("sha256").update(directoryUrl).digest("hex").slice(0, 16);
  const sealedFor = keyOf(acmeAccountKind, id);
  const stored = await accounts.getCurrent(id);
  if (stored !== undefined) return sealer.open(stored.object.spec.sealedKey, sealedFor);
  const key = newPrivateKey();
  const unit = begin();
  unit.create(acmeAccountKind, {
    metadata: newMetadata(id, clock.now()),
    spec: { sealedKey: sealer.seal(key, sealedFor) },
    status: {},
  });
  try {
    await unit.commit();
    return key;
  } catch (error) {
    const other = error instanceof Conflict ? await accounts.getCurrent(id) : undefined;
    if (other === undefined) throw error;
    return sealer.open(other.object.spec.sealedKey, sealedFor);
  }
}

/** A P-256 key, PEM. */
export function newPrivateKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}
