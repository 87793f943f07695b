import { createHash, randomBytes } from "node:crypto";
import { defineKind } from "#kernel/store/kind.ts";
import type { Resource } from "#kernel/store/resource.ts";

/** What an application calls the proxy with. Revoked ones are gone; their usage stays. */
export type InferenceKey = Resource<InferenceKeySpec, Readonly<Record<string, never>>>;

export const inferenceKeyKind = defineKind<InferenceKey>("inference-key", {
  goesWithOrganization: true,
  quotas: [{ name: "inferenceKeys", words: "inference keys", limit: 1_000 }],
});

export interface InferenceKeySpec {
  /** SHA-256 of the secret, hex: it has 192 random bits, so that nothing is gained by a slower hash. */
  readonly secretHash: string;
  /** Null: no limit. */
  readonly monthlyTokenLimit: number | null;
  readonly rateLimitRpm: number | null;
  readonly expiresAt: number | null;
  readonly suspended: boolean;
}

const secretBytes = 24;

/** `inf_`, the id of the key, and 192 random bits. */
export function newInferenceSecret(id: string): string {
  return `inf_${id}_${randomBytes(secretBytes).toString("base64url")}`;
}

export function hashOfSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}
