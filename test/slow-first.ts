import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** 0 for what starts programs, 1 for what opens connections, 2 for what tests one file beside it. */
function rank(root: string, { moduleId }: TestSpecification): number {
  const path = relative(root, moduleId).replaceAll("\\", "/");
  if (/^(apps\/[^/]+\/)?test\//.test(path)) return 0;
  return /^packages\/[^/]+\/test\//.test(path) ? 1 : 2;
}

/**
 * Long files first, also where nothing was measured yet: a long one that begins last is waited for by idle workers. Among
 * equals Vitest decides, by the times of the last run or else by size.
 */
export default class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config;
    return (await super.sort(files)).sort((a, b) => rank(root, a) - rank(root, b));
  }
}
