import { HoldfastError } from "@holdfast/common/errors.ts";
import { createTokenBuckets } from "@holdfast/common/token-bucket.ts";

/** Counts the bytes that each caller has etcd write: quotas bound objects that stay, and this the churn. */
export interface WrittenBytes {
  /**
   * Throws RATE_LIMITED past the bytes that a credential or an organization may write in an hour. The function that it
   * answers takes them off again.
   */
  take(writer: Writer, bytes: number): () => void;
}

/** The author of a change, as the audit log names it. */
export interface Writer {
  readonly actor: string;
  readonly organizationId: string;
}

/** An organization has the bytes of so many credentials. */
const organizationFactor = 3;
const hourS = 3_600;
/** The platform's own changes have names without a kind. */
const caller = /^(?:api_key|token|user):/;

/** `bytesPerHour` is a credential's; an hour's worth may be written at once. In the memory of this process. */
export function createWrittenBytes(bytesPerHour: number, monotonicMs: () => number): WrittenBytes {
  const bucketsOf = (bytes: number) => createTokenBuckets({ burst: bytes, perSecond: bytes / hourS }, monotonicMs);
  const shares = [
    { buckets: bucketsOf(bytesPerHour), name: ({ actor }: Writer) => actor, whose: "This credential" },
    {
      buckets: bucketsOf(bytesPerHour * organizationFactor),
      name: ({ organizationId }: Writer) => organizationId,
      whose: "All credentials of the organization",
    },
  ];

  return {
    take(writer, bytes) {
      const taken: (() => void)[] = [];
      const giveBack = () => {
        for (const each of taken.splice(0)) each();
      };
      if (!caller.test(writer.actor)) return giveBack;
      for (const { buckets, name, whose } of shares) {
        const of = name(writer);
        if (of === "") continue;
        const { waitS } = buckets.take(of, bytes);
        if (waitS === 0) {
          taken.push(() => buckets.giveBack(of, bytes));
          continue;
        }
        giveBack();
        const detail = `${whose} may have ${buckets.rate.burst} bytes written in an hour. Nothing was done.`;
        throw new HoldfastError("RATE_LIMITED", detail, { retryAfterS: Math.ceil(waitS) });
      }
      return giveBack;
    },
  };
}
