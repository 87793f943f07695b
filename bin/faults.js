// Fault tests that are too long for `npm test`:
//
//   npm run faults -- [--kills N] [--seed N]   random kills
//   npm run faults -- --outages                outages of a full minute instead of 16 s
//   npm run faults -- --incus                  faults of Incus machines: pause and cut of five minutes, hanging daemon
//   npm run faults -- --members                services with replicas on Incus: network, disk and host faults
//   npm run faults -- --hosts                  two hosts with Incus machines: full, lost, drained
//   npm run faults -- --hostile                every hostile caller, each crowd of a thousand twenty times
//   npm run faults -- --backups                kills in each step of backups, 100 restored moments, MinIO as the store
//   npm run faults -- --upgrades               upgrades of Valkey and PostgreSQL, with kills; makes the image
//   npm run faults -- --queues                 queues of restored and renamed databases, floods, 60 kills of workers
//   npm run faults -- --s3-tests DIR           a checkout of ceph/s3-tests on a files service
//   npm run faults -- --mongodb-specifications DIR  a checkout of mongodb/specifications on MongoDB's API
//   npm run faults -- --babelfish DIR          JDBC inputs of a checkout of babelfish_extensions on T-SQL
//   npm run faults -- --go-mssqldb DIR         tests of a checkout of microsoft/go-mssqldb on T-SQL; takes Go
//   npm run faults -- --projects               a controller kill after every write of a project, not every fifth
//   npm run faults -- --alerts                 10,000 concurrent alerts, half of them for a hanging channel
//   npm run faults -- --failovers [N] [--seed N]  N faults of primaries (default 100), see test/faults/failovers
//   npm run faults -- --soak                   ten minutes of pauses of at most two seconds: no failover
//   npm run faults -- --restore-walk [--type valkey] [--seed N] [--minutes N]
//                                              a random life of PostgreSQL or Valkey, restored by each method
//   npm run faults -- --middle [--seed N]      kills at each step of an image replacement and of an agent upgrade
import { join, resolve } from "node:path";
import { runPinned } from "./run-pinned.js";
import { checkout, SetUpError } from "./set-up.js";
import { sourceFiles } from "./source-files.js";

const flags = process.argv.slice(2);
const vitest = join(checkout, "node_modules", "vitest", "vitest.mjs");
const files = sourceFiles().filter((path) => path.endsWith(".test.ts"));

/** Files of tests by their paths without a suffix: vitest would run the others if one of them had moved. */
function tests(...names) {
  return names.map((name) => {
    const found = files.find((path) => [`${name}.test.ts`, `${name}.long.test.ts`].includes(path));
    if (found === undefined) throw new SetUpError(`There is no test file ${name}.`);
    return found;
  });
}

/** Flags with a checkout of others' tests: repository, file of tests and its setting. */
// biome-ignore format: a table, aligned so that it reads as one
const checkouts = [
  ["--s3-tests",               "ceph/s3-tests",                                 "test/conformance/s3-tests",               "HOLDFAST_TEST_S3_TESTS"],
  ["--mongodb-specifications", "mongodb/specifications",                        "test/conformance/mongodb-specifications", "HOLDFAST_TEST_MONGODB_SPECIFICATIONS"],
  ["--babelfish",              "babelfish-for-postgresql/babelfish_extensions", "test/conformance/babelfish",              "HOLDFAST_TEST_BABELFISH"],
  ["--go-mssqldb",             "microsoft/go-mssqldb",                          "test/conformance/go-mssqldb",             "HOLDFAST_TEST_GO_MSSQLDB"],
];

if (flags.includes("--outages")) {
  await runPinned([vitest, "run", ...tests("test/faults/outages")], { HOLDFAST_TEST_OUTAGE_S: "60" });
} else if (flags.includes("--incus")) {
  await runPinned([vitest, "run", "--maxWorkers=1", ...tests("test/faults/machines", "test/faults/incus")], {
    HOLDFAST_TEST_PAUSE_S: "300",
  });
} else if (flags.includes("--members")) {
  await runPinned([vitest, "run", ...tests("test/faults/members/members-on-incus")], { HOLDFAST_TEST_MEMBERS: "1" });
} else if (flags.includes("--hosts")) {
  await runPinned([vitest, "run", ...tests("test/faults/incus-hosts")], { HOLDFAST_TEST_HOSTS: "1" });
} else if (flags.includes("--hostile")) {
  await runPinned([vitest, "run", "test/hostile"], { HOLDFAST_TEST_CROWDS: "20" });
} else if (flags.includes("--backups")) {
  const system = tests(
    "test/system/backup-kills",
    "test/system/restore-points",
    "test/system/increments",
    "test/system/s3-backups",
  );
  const others = tests("test/conformance/object-stores", "agent/src/agent-increments");
  await runPinned([vitest, "run", "--maxWorkers=1", ...system, ...others], { HOLDFAST_TEST_BACKUPS: "all" });
} else if (flags.includes("--upgrades")) {
  const upgrades = tests(
    "test/system/version-upgrade",
    "test/system/postgresql-upgrade",
    "test/system/postgresql-upgrade-replicas",
    "agent/src/agent-data-upgrade",
  );
  await runPinned([vitest, "run", "--maxWorkers=1", ...upgrades], { HOLDFAST_TEST_UPGRADES: "1" });
} else if (flags.includes("--queues")) {
  const queues = tests(
    "test/system/queues",
    "test/system/queue-copies",
    "test/system/queue-controllers",
    "test/system/queue-kills",
  );
  await runPinned([vitest, "run", "--maxWorkers=1", ...queues], { HOLDFAST_TEST_QUEUES: "all" });
} else if (checkouts.some(([flag]) => flags.includes(flag))) {
  const [flag, repository, file, setting] = checkouts.find(([name]) => flags.includes(name));
  const directory = flags[flags.indexOf(flag) + 1];
  if (directory === undefined) throw new SetUpError(`${flag} needs the directory of a checkout of ${repository}.`);
  await runPinned([vitest, "run", ...tests(file)], { [setting]: resolve(directory) });
} else if (flags.includes("--projects")) {
  await runPinned([vitest, "run", ...tests("test/system/project-kills")], { HOLDFAST_TEST_PROJECTS: "all" });
} else if (flags.includes("--alerts")) {
  await runPinned([vitest, "run", ...tests("test/faults/alert-flood")], { HOLDFAST_TEST_ALERTS: "10000" });
} else if (flags.includes("--failovers")) {
  const after = (flag, otherwise) => (flags.includes(flag) ? flags[flags.indexOf(flag) + 1] : otherwise);
  const count = /^\d+$/.test(after("--failovers") ?? "") ? after("--failovers") : "100";
  const seed = after("--seed");
  const failovers = tests(
    "test/faults/failover-clients",
    "test/faults/failover-clocks",
    "test/faults/failover-releases",
    "test/faults/failovers",
  );
  await runPinned([vitest, "run", "--maxWorkers=1", ...failovers], {
    HOLDFAST_TEST_FAILOVERS: count,
    ...(seed !== undefined && { HOLDFAST_TEST_SEED: seed }),
  });
} else if (flags.includes("--soak")) {
  await runPinned([vitest, "run", ...tests("test/faults/failover-soak")], { HOLDFAST_TEST_SOAK_S: "600" });
} else if (flags.includes("--restore-walk")) {
  const rest = flags.filter((flag) => flag !== "--restore-walk");
  await runPinned([join(checkout, "test", "faults", "run-restore-walk.ts"), ...rest]);
} else if (flags.includes("--middle")) {
  const rest = flags.filter((flag) => flag !== "--middle");
  await runPinned([join(checkout, "test", "faults", "run-step-kills.ts"), ...rest]);
} else {
  await runPinned([join(checkout, "test", "faults", "run.ts"), ...flags]);
}
