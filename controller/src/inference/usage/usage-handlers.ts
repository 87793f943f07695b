import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Handlers } from "@holdfast/common/call.ts";
import { invalid } from "@holdfast/common/errors.ts";
import { microcentsPerCent, periodOf, periodStart } from "@holdfast/common/inference/accounts.ts";
import type { InferenceService } from "@holdfast/proto/holdfast/v1/inference_pb.ts";
import { type InferenceApiDeps, ownOrganization } from "../inference-api-deps.ts";
import type { UsageSum } from "./usage-store.ts";

/** Maximum number of groups in a response, the most expensive first. */
const itemsMax = 1_000;

export function createUsageHandlers({
  usage,
  keys,
  clock,
}: InferenceApiDeps): Pick<Handlers<typeof InferenceService>, "getInferenceUsage"> {
  return {
    async getInferenceUsage({ orgId, groupBy, from, to }, call) {
      const organizationId = ownOrganization(orgId, call);
      const now = clock.now();
      const begin = from === undefined ? periodStart(periodOf(now)) : timestampMs(from);
      const end = to === undefined ? now : timestampMs(to);
      if (begin >= end) throw invalid({ field: "from", code: "after_end", detail: "must be before to" });
      const by = groupBy === "key" ? "key" : "model";
      const { items, total } = await usage.sum(organizationId, by, begin, end, itemsMax);
      return {
        period: { from: timestampFromMs(begin), to: timestampFromMs(end) },
        currency: "EUR",
        items: items.map((sum) => ({
          ...figuresOf(sum),
          ...(by === "model" ? { model: sum.group } : { keyId: sum.group, ...nameOf(sum.group) }),
        })),
        total: figuresOf(total),
      };
    },
  };

  function nameOf(id: string): { name?: string } {
    const name = keys.get(id)?.object.metadata.name;
    return name === undefined ? {} : { name };
  }
}

function figuresOf(sum: Omit<UsageSum, "group">) {
  return {
    requests: BigInt(sum.requests),
    promptTokens: BigInt(sum.promptTokens),
    completionTokens: BigInt(sum.completionTokens),
    costCents: sum.costMicrocents / microcentsPerCent,
    estimatedRequests: BigInt(sum.estimatedRequests),
  };
}
