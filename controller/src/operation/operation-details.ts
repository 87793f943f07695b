import type { DataSnapshot } from "./data-snapshot.ts";
import type { MaintenanceWork, UpgradeWork } from "./maintenance-work.ts";

/** Work and outcome of each type of operation, besides the common fields. Types without a row have neither. */
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

/** Size of a service, as its user chose it. */
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
  /** Empty: the system chooses the replacement of `from`. */
  readonly nodeId: string;
  /** In an automatic failover: the primary that failed. In a move: the node that is replaced. */
  readonly from?: string;
}

/** Outcome for the data of a change of image or kernel. */
export interface ReplacementOutcome {
  /** Reason why the data are not rolled back although the image is; absent when they are. */
  readonly dataNotRolledBack?: string;
  /** Outcome of the snapshot before the change; absent until it is known. */
  readonly snapshot?: DataSnapshot;
}

export type DetailedType = keyof OperationDetails;
export type WorkOf<T> = T extends DetailedType ? OperationDetails[T]["work"] : never;
