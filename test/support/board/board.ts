import { defineKind } from "@holdfast/controller/kernel/store/kind.ts";
import type { Resource } from "@holdfast/controller/kernel/store/resource.ts";

/**
 * An owner of one machine that is no service, and belongs to the platform. Its machine has no data: another one can
 * replace it anywhere.
 */
export type Board = Resource<{ readonly zone: string }, object>;

export const boardKind = defineKind<Board>("board");

/** Port at which clients reach the engine on a board's machine. */
export const boardPort = 6_379;
