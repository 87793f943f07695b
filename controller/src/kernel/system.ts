import type { ServedService } from "@holdfast/common/call.ts";
import type { Mount } from "@holdfast/gateway/mounts.ts";
import type { SchemaRule } from "@holdfast/gateway/openapi/schema-rules.ts";
import type { ProcessGauge } from "./metrics/process-metrics.ts";
import type { EntryPlanner } from "./outbox/entry-planner.ts";
import type { Contribution } from "./part.ts";
import type { ServiceGauge } from "./metrics/service-gauge.ts";
import type { ControlLoop } from "./runtime/runner.ts";

/** A part of the controller: RPCs, control loops, metrics and resources to close. Each group opens one. */
export interface System {
  readonly name: string;
  /** Values of the parts that its declaration names in `provides`. */
  readonly provides?: readonly Contribution[];
  /** RPCs of the public API and of the admin API, over REST and gRPC. */
  readonly rpcs?: readonly ServedService[];
  /** Limits of requests that RPCs check beyond the rules of the protos, for the API description. */
  readonly schemaRules?: readonly SchemaRule[];
  /** HTTP pages without a credential; the gateway limits their rate by source. */
  readonly pages?: readonly Mount[];
  /** Reconcilers and periodic work; one controller at a time works on a key. */
  readonly work?: readonly ControlLoop[];
  /** Planners of history rows that are inserted together with their events. */
  readonly planners?: readonly EntryPlanner[];
  /** Metrics of this process, for operators. */
  readonly metrics?: readonly ProcessGauge[];
  /** Metrics of services, for their readers. */
  readonly serviceGauges?: readonly ServiceGauge[];
  /** Starts background work, once the reconcilers run. */
  start?(): void;
  /** Ends background work and closes resources, in bounded time. Machines keep running. */
  close?(): void | Promise<void>;
}
