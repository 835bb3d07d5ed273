/** The value of `--name=value` on the command line. */
export function flag(name, fallback) {
  const found = process.argv.find((arg) => arg.startsWith(`--${name}=`));
  return found ? found.slice(name.length + 3) : fallback;
}
