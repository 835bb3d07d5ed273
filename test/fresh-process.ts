// Runs before each test file. Files share a process and its modules, and a port that one file's server has left may be given to
// another's: nothing that was learned of the first must be taken for true of the second.
import { forgetAll } from "../packages/client/src/connection/verdicts.ts";

forgetAll();
