#include "cli/cli.h"

int main(int argc, char** argv) { return octavo::run_cli(argc, argv); }
