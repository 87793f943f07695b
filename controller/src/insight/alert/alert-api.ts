import { type ServedService, serve } from "@holdfast/common/call.ts";
import { AlertService } from "@holdfast/proto/holdfast/v1/alert_pb.ts";
import type { AlertApiDeps } from "./alert-api-deps.ts";
import { createAlertListHandlers } from "./alert-list-handlers.ts";
import { createAlertRuleHandlers } from "./alert-rule-handlers.ts";
import { createDefaultChannelHandlers } from "./default-channel-handlers.ts";
import { faultsOfMetric } from "./rule-metric.ts";

/** The RPCs of alert rules; who evaluates them is the evaluator. */
export function createAlertApi(deps: AlertApiDeps): ServedService {
  const handlers = {
    ...createAlertRuleHandlers(deps),
    ...createAlertListHandlers(deps),
    ...createDefaultChannelHandlers(deps),
  };
  return serve(AlertService, handlers, { createAlertRule: ({ metric }) => faultsOfMetric(metric) });
}
