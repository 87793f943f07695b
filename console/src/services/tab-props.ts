import type { ManagedService } from "@holdfast/sdk/responses.ts";

/** Properties of a tab: the newest state of the service. */
export interface TabProps {
  readonly service: ManagedService;
  readonly reload: () => void;
}
