import { connect } from "node:net";
import { expect, test } from "vitest";
import { SourceRefused, SourceUnreadable } from "../engines/backup-facet.ts";
import { ProgramFailed } from "../os/program.ts";
import { JobFailed } from "./job-failed.ts";

test("a failure message contains no message of the operating system", async () => {
  const error = await new Promise<Error>((resolve) => connect("/nowhere/at.all").on("error", resolve));
  expect(error.message).toMatch(/ENOENT/);
  const failed = JobFailed.from("source_failed", error);
  expect(failed).toMatchObject({ code: "source_failed", cause: error });
  expect(failed.message).not.toMatch(/ENOENT|connect/);
});

test("a full disk is recognized in the messages of all programs", () => {
  const failed = JobFailed.from("failed", new Error("could not write to file: No space left on device"));
  expect(failed).toMatchObject({ code: "no_room", message: expect.stringContaining("expand the storage") });
});

test("a full disk that ends an engine is named as such, though other lines follow it", () => {
  const lines = Array.from({ length: 8 }, (_, index) => `LOG:  line ${index}`);
  const output = ['FATAL:  could not write to file "x": No space left on device', ...lines].join("\n");
  const error = new ProgramFailed("postgres", "ended with 1", output);
  expect(error.message).toContain("FATAL");
  expect(JobFailed.from("failed", error)).toMatchObject({ code: "no_room" });
});

test("words of the engine stay", () => {
  expect(JobFailed.from("source_failed", new Error("the database system is shutting down"))).toMatchObject({
    message: "the database system is shutting down",
  });
});

test("data that no backup can contain have a code of their own, and the engine's words", () => {
  const error = new SourceUnreadable("The topic huge has a batch of 80 MiB.");
  expect(JobFailed.from("source_failed", error)).toMatchObject({ code: "source_unreadable", message: error.message });
});

test("a refusal by the engine has a code and a bounded reason, unless the disk is full", () => {
  const error = new SourceRefused("OpenSearch refused the snapshot: Indices don't have primary shards [orders]");
  expect(JobFailed.from("source_failed", error)).toMatchObject({ code: "source_refused", message: error.message });
  expect(new SourceRefused("x".repeat(10_000)).message.length).toBeLessThan(600);
  const full = new SourceRefused("OpenSearch refused the snapshot: No space left on device");
  expect(JobFailed.from("source_failed", full)).toMatchObject({ code: "no_room" });
});
