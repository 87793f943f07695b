import { createHash, randomBytes } from "node:crypto";
import { defineKind } from "#kernel/store/kind.ts";
import type { Resource } from "#kernel/store/resource.ts";

/** A key with which an application calls the proxy. Revoked keys are deleted; their usage remains. */
export type InferenceKey = Resource<InferenceKeySpec, Readonly<Record<string, never>>>;

export const inferenceKeyKind = defineKind<InferenceKey>("inference-key", {
  deletedWithOrganization: true,
  quotas: [{ name: "inferenceKeys", label: "inference keys", limit: 1_000 }],
});

export interface InferenceKeySpec {
  /** SHA-256 of the secret in hex; the secret has 192 random bits, so a fast hash is sufficient. */
  readonly secretHash: string;
  /** Null: no limit. */
  readonly monthlyTokenLimit: number | null;
  readonly rateLimitRpm: number | null;
  readonly expiresAt: number | null;
  readonly suspended: boolean;
}

const secretBytes = 24;

/** The secret of a key: `inf_<id of the key>_<192 random bits in base64url>`. */
export function newInferenceSecret(id: string): string {
  return `inf_${id}_${randomBytes(secretBytes).toString("base64url")}`;
}

export function hashOfSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}
