import type { ManagedService } from "@holdfast/sdk/responses.ts";

/** The properties of each tab: the newest state of the service. */
export interface TabProps {
  readonly service: ManagedService;
  readonly reload: () => void;
}
