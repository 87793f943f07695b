/** Outcome of a test of ceph/s3-tests, as the plugin of pytest writes it. */
export interface Outcome {
  readonly outcome: "passed" | "failed" | "skipped";
  readonly error: string;
  readonly marks: readonly string[];
}

export type Outcomes = Readonly<Record<string, Outcome>>;

/** Marks of tests about features that files services do not have. Such tests do not run: many wait for minutes. */
export const featuresNotOffered = [
  "auth_aws2",
  "bucket_encryption",
  "bucket_logging",
  "bucket_logging_cleanup",
  "bucket_policy",
  "cloud_restore",
  "cloud_transition",
  "encryption",
  "group_policy",
  "iam_account",
  "iam_role",
  "iam_user",
  "lifecycle",
  "lifecycle_expiration",
  "lifecycle_transition",
  "object_lock",
  "object_ownership",
  "s3select",
  "s3website",
  "sns",
  "sse_s3",
  "storage_class",
  "test_of_sts",
  "user_policy",
  "versioning",
  "webidentity_test",
] as const;

/** Name of a test, without the path of its file. */
export function nameOf(id: string): string {
  return id.split("::").at(-1) ?? id;
}

/** Counts of outcomes, and the names of failed tests. */
export function summaryOf(outcomes: Outcomes): {
  readonly passed: number;
  readonly skipped: Readonly<Record<string, number>>;
  readonly failed: readonly string[];
} {
  const all = Object.entries(outcomes);
  const skipped: Record<string, number> = {};
  for (const [, { outcome, error }] of all) {
    const reason = error.replace(/^Skipped: /, "");
    if (outcome === "skipped") skipped[reason] = (skipped[reason] ?? 0) + 1;
  }
  return {
    passed: all.filter(([, { outcome }]) => outcome === "passed").length,
    skipped,
    failed: all.flatMap(([id, { outcome }]) => (outcome === "failed" ? [nameOf(id)] : [])).toSorted(),
  };
}
