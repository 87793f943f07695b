/** Path of the pinned pnpm's program. */
export declare function ensurePnpm(): Promise<string>;
