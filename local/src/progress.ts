const reportIntervalMs = 15_000;

/** Runs work that prints its steps, and prints the elapsed time of a long step every 15 s. */
export async function withProgress<T>(
  print: (line: string) => void,
  work: (print: (line: string) => void) => Promise<T>,
): Promise<T> {
  let step: string | undefined;
  let seconds = 0;
  const timer = setInterval(() => {
    seconds += reportIntervalMs / 1_000;
    if (step !== undefined) print(`${step}: ${seconds} s elapsed`);
  }, reportIntervalMs);
  try {
    return await work((line) => {
      step = line.replace(/ \(about .*\)$/, "");
      seconds = 0;
      timer.refresh();
      print(line);
    });
  } finally {
    clearInterval(timer);
  }
}
