import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ArchiveObservationSchema, ArchiveRunSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { expect, test } from "vitest";
import { node, runningService } from "@holdfast/testing/controller/service-object.ts";
import { taskTarget } from "../../service/member/member-roles.ts";
import { type LogRange, newArchive } from "../archive/archive.ts";
import { reportedRanges } from "./log-archive.ts";

const made = newArchive(runningService(), 0, 0);
const archive = (log: readonly LogRange[]) => ({
  ...made,
  spec: { ...made.spec, log: { archiveId: "a-1", keyId: "k-1", keyVersion: 1, wrappedKey: "w", since: 0 } },
  status: { ...made.status, log },
});
const report = (term: bigint, lastSequence: bigint, at: number) =>
  create(ArchiveObservationSchema, {
    archiveId: "a-1",
    state: "following",
    term,
    firstSequence: 1n,
    lastSequence,
    fromTime: timestampFromMs(term === 1n ? 1_000 : 10_000),
    durableTime: timestampFromMs(at),
  });

test("a replaced primary's last report counts until the next term has a range", () => {
  const former = { ...node, id: "former" };
  const service = runningService({}, { nodes: [...runningService().spec.nodes, former] });
  const { id: primary } = taskTarget(service);
  expect(primary).not.toBe(former.id);
  const recorded = reportedRanges(archive([]), service, () => report(1n, 3n, 3_000));
  const reports = new Map([[former.id, report(1n, 9n, 9_000)]]);
  const reportOf = (id: string) => reports.get(id);
  expect(reportedRanges(archive(recorded), service, reportOf)).toMatchObject([{ lastSequence: 9, toTime: 9_000 }]);
  const run = create(ArchiveRunSchema, {
    term: 1n,
    firstSequence: 1n,
    lastSequence: 6n,
    toTime: timestampFromMs(6_000),
  });
  reports.set(primary, create(ArchiveObservationSchema, { ...report(2n, 1n, 11_000), earlier: [run] }));
  const both = reportedRanges(archive(recorded), service, reportOf);
  const tail = { lastSequence: 9, fromTime: 6_000, toTime: 9_000 };
  expect(both).toMatchObject([{ term: 1, lastSequence: 6, tail }, { term: 2 }]);
  expect(reportedRanges(archive(both), service, reportOf)).toBe(both);
});
