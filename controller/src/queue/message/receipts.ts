import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { QueueObject } from "../queue.ts";

/** The claim of one message by a worker. */
export interface Receipt {
  readonly id: bigint;
  readonly worker: string;
}

/** Receipts of claims: sealed for the queue, so that they cannot be forged or used for another queue. */
export interface Receipts {
  seal(queue: QueueObject, receipt: Receipt): string;
  /** Returns undefined unless the text is a receipt of this queue. */
  open(queue: QueueObject, text: string): Receipt | undefined;
}

const sealedPrefix = "sealed.";

export function createReceipts(sealer: Pick<Sealer, "sealDeterministic" | "open">): Receipts {
  const labelOf = ({ spec }: QueueObject) => `receipt ${spec.serviceId} ${spec.queueId}`;
  return {
    seal: (queue, { id, worker }) =>
      sealer.sealDeterministic(`${id} ${worker}`, labelOf(queue)).slice(sealedPrefix.length),
    open(queue, text) {
      try {
        const [id = "", worker = ""] = sealer.open(sealedPrefix + text, labelOf(queue)).split(" ");
        return { id: BigInt(id), worker };
      } catch {
        return undefined;
      }
    },
  };
}
