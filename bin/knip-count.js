/**
 * A reporter that tells how many files knip read, so that a knip that sees nothing is not taken for a clean one.
 *
 * @public because knip loads reporters by their default export.
 */
export default function reportCount({ counters }) {
  process.stdout.write(`read ${counters.processed} files\n`);
}
