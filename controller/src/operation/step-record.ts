/** How an operation came to its present step. Absent in what an older version wrote, and before the first step. */
export interface StepRecord {
  readonly step: string;
  /** The most that was done of the operation during this step. */
  readonly progressPct: number;
  /** Steps before it, in order. */
  readonly passed: readonly string[];
}

/** Where an operation is by what is observed now, which may be behind where it was: an agent that restarts, a name that is republished. */
export interface ObservedStep {
  readonly step: string | null;
  readonly progressPct: number;
}

/**
 * Pure: the record with the step that is observed. Steps go forward: one that was left is not entered again, and no step is entered
 * with less progress than the present one has. So an observation that falls back leaves the record as it is.
 */
export function withStep(record: StepRecord | undefined, { step, progressPct }: ObservedStep): StepRecord | undefined {
  if (step === null) return record;
  if (record === undefined) return { step, progressPct, passed: [] };
  if (progressPct < record.progressPct || record.passed.includes(step)) return record;
  if (step !== record.step) return { step, progressPct, passed: [...record.passed, record.step] };
  return progressPct === record.progressPct ? record : { ...record, progressPct };
}
