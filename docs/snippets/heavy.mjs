/** Runs in a thread of its own: it may block. */
export default ({ upTo }, ctx) => {
  let primes = 0;
  for (let n = 2; n <= upTo; n++) {
    let prime = true;
    for (let d = 2; d * d <= n && prime; d++) prime = n % d !== 0;
    if (prime) primes += 1;
    if (n % 1_000 === 0) ctx.progress(n, upTo);
  }
  return primes;
};
