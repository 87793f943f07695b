import { create, toBinary } from "@bufbuild/protobuf";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { boundedObservation } from "./bounded-frames.ts";

const failed = { id: "r-1", state: "failed", reason: "It ended.", lastLines: ["one line"] };

test("the releases of an app are part of an observation of usual size", () => {
  const observation = create(InstanceObservationSchema, { app: { servingReleaseId: "r-0", releases: [failed] } });
  expect(boundedObservation(observation)).toBe(observation);
});

test("a program that prints long lines does not make the observation of its machine large", () => {
  const lastLines = Array.from({ length: 40 }, () => "x".repeat(4_000));
  const releases = Array.from({ length: 10 }, () => ({ ...failed, lastLines }));
  const bounded = boundedObservation(
    create(InstanceObservationSchema, { app: { servingReleaseId: "r-0", releases }, state: "running" }),
  );
  expect(bounded).toMatchObject({ state: "running", app: { servingReleaseId: "r-0", releases: { length: 4 } } });
  expect(bounded.app?.releases[0]).toMatchObject({ id: "r-1", state: "failed", reason: "It ended." });
  expect(toBinary(InstanceObservationSchema, bounded).byteLength).toBeLessThan(100_000);
});
