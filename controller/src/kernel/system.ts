import type { ServedService } from "@holdfast/common/call.ts";
import type { Mount } from "@holdfast/gateway/mounts.ts";
import type { Form } from "@holdfast/gateway/openapi/forms.ts";
import type { ProcessGauge } from "./metrics/process-metrics.ts";
import type { EntryPlanner } from "./outbox/entry-planner.ts";
import type { ServiceFigure } from "./metrics/service-figure.ts";
import type { ControlLoop } from "./runtime/runner.ts";

/** A part of the controller: its RPCs, its reconcilers, its resources to close. Each group makes one of itself. */
export interface System<Gives = unknown> {
  readonly name: string;
  /** Parts that systems after it are opened with. */
  readonly gives?: Gives;
  /** RPCs of the public API and of operators, over REST and gRPC alike. */
  readonly rpcs?: readonly ServedService[];
  /** Limits of inputs that its RPCs check beyond the protos, for the description of the API. */
  readonly forms?: readonly Form[];
  /** Pages that need no credential; the gateway paces them by source. */
  readonly pages?: readonly Mount[];
  /** Reconcilers and periodic work, each key done by one controller at a time. */
  readonly work?: readonly ControlLoop[];
  /** Add rows to the history with the events that they are about. */
  readonly planners?: readonly EntryPlanner[];
  /** The group's metrics of this process, for operators. */
  readonly metrics?: readonly ProcessGauge[];
  /** The group's metrics of a service, for its readers. */
  readonly serviceFigures?: readonly ServiceFigure[];
  /** Begins work that nothing waits for, once the reconcilers run. */
  start?(): void;
  /** Ends what it began; bounded by itself. Machines go on. */
  close?(): void | Promise<void>;
}
