import { HoldfastError } from "@holdfast/common/errors.ts";
import { createTokenBuckets, takeTokens } from "@holdfast/common/concurrency/token-buckets.ts";

/**
 * Limits the bytes that each caller writes to etcd in an hour. Quotas bound the stored objects, and this limit the
 * number of changes.
 */
export interface WriteRateLimit {
  /**
   * Charges the bytes. Throws RATE_LIMITED beyond the hourly limit of the credential or of its organization. The
   * returned function refunds the bytes.
   */
  take(writer: Writer, bytes: number): () => void;
}

/** The author of a change, with the actor of the audit log. */
export interface Writer {
  readonly actor: string;
  readonly organizationId: string;
}

/** An organization may write as much as this many credentials. */
const organizationFactor = 3;
const hourS = 3_600;
/** Actors that are limited. Changes by the platform itself have an actor without a kind. */
const caller = /^(?:api_key|token|user):/;

/** `bytesPerHour` is the limit of one credential, and its burst. Counts are in this process's memory. */
export function createWriteRateLimit(bytesPerHour: number, monotonicMs: () => number): WriteRateLimit {
  const bucketsOf = (bytes: number) => createTokenBuckets({ burst: bytes, perSecond: bytes / hourS }, monotonicMs);
  const limits = [
    { buckets: bucketsOf(bytesPerHour), name: ({ actor }: Writer) => actor, subject: "This credential" },
    {
      buckets: bucketsOf(bytesPerHour * organizationFactor),
      name: ({ organizationId }: Writer) => organizationId,
      subject: "All credentials of the organization",
    },
  ];

  return {
    take(writer, bytes) {
      if (!caller.test(writer.actor)) return () => undefined;
      const shares = limits.flatMap(({ buckets, name, subject }) =>
        name(writer) === "" ? [] : { buckets, name: name(writer), tokens: bytes, subject },
      );
      const taken = takeTokens(shares);
      if (taken.exceeded === undefined) return taken.refund;
      const { subject, buckets } = taken.exceeded;
      const detail = `${subject} may write ${buckets.rate.burst} bytes per hour. Nothing was changed.`;
      throw new HoldfastError("RATE_LIMITED", detail, { retryAfterS: Math.ceil(taken.waitS) });
    },
  };
}
