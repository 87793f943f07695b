/**
 * A reporter that prints the number of files that knip read, so that a run that read none does not pass as clean.
 *
 * @public because knip loads reporters by their default export.
 */
export default function reportCount({ counters }) {
  process.stdout.write(`read ${counters.processed} files\n`);
}
