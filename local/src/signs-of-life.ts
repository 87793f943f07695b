const everyMs = 15_000;

/** Does work that says what it begins, and says for how long when that goes on, so that nobody takes it for hung. */
export async function withSigns<T>(
  say: (line: string) => void,
  work: (say: (line: string) => void) => Promise<T>,
): Promise<T> {
  let step: string | undefined;
  let seconds = 0;
  const timer = setInterval(() => {
    seconds += everyMs / 1_000;
    if (step !== undefined) say(`${step}: ${seconds} s so far`);
  }, everyMs);
  try {
    return await work((line) => {
      step = line.replace(/ \(about .*\)$/, "");
      seconds = 0;
      timer.refresh();
      say(line);
    });
  } finally {
    clearInterval(timer);
  }
}
