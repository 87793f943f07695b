import type { DataSnapshot } from "./data-snapshot.ts";
import type { MaintenanceWork, UpgradeWork } from "./maintenance-work.ts";

/**
 * Fields of one type of operation beside the common ones: its work, and its outcome. Types without a row have neither.
 */
export interface OperationDetails {
  readonly add_node: { readonly work: NodeWork; readonly outcome: never };
  readonly remove_node: { readonly work: NodeWork; readonly outcome: never };
  readonly move_node: { readonly work: NodeWork; readonly outcome: never };
  readonly failover: { readonly work: NodeWork; readonly outcome: never };
  readonly maintenance: { readonly work: MaintenanceWork; readonly outcome: ReplacementOutcome };
  readonly upgrade: { readonly work: UpgradeWork; readonly outcome: ReplacementOutcome };
  readonly resize: { readonly work: SizeChange; readonly outcome: never };
  readonly expand: { readonly work: SizeChange; readonly outcome: never };
}

/** How large a service is, as its user says it. */
export interface ServiceSize {
  readonly planName: string;
  readonly storageSizeGb: number;
}

export interface SizeChange {
  readonly from: ServiceSize;
  readonly to: ServiceSize;
}

/** The node that is added, removed or moved, or that becomes the primary. */
export interface NodeWork {
  /** Empty: whichever takes the place of `from`. */
  readonly nodeId: string;
  /** Of an automatic failover: the primary that fell silent. Of a move: the node that is replaced. */
  readonly from?: string;
}

/** What became of the data while another image or kernel came under them. */
export interface ReplacementOutcome {
  /** Why the data stay as they are though the image is rolled back; absent when they go back with it. */
  readonly dataStay?: string;
  /** Of the data as they were before; absent until that is known. */
  readonly snapshot?: DataSnapshot;
}

export type DetailedType = keyof OperationDetails;
export type WorkOf<T> = T extends DetailedType ? OperationDetails[T]["work"] : never;
