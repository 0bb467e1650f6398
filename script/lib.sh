# What the scripts share. Sourced, not run: it moves to the top of the repository.
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# What one clone compiled serves the next one, wherever it lies.
export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

# configure PRESET [-DNAME=VALUE…]
configure() {
  local preset=$1 log
  shift
  local launcher=()
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  mkdir -p "build/$preset"
  log=build/$preset/configure.log
  if ! cmake --preset "$preset" "${launcher[@]}" "$@" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
}

# compile PRESET [target…]: quiet unless something goes wrong
compile() {
  local preset=$1 log
  shift
  log=build/$preset/build.log
  if ! cmake --build "build/$preset" ${1:+--target "$@"} >"$log" 2>&1; then
    grep -vE '^\[[0-9]+/[0-9]+\] (Building|Linking|Generating)' "$log" >&2
    return 1
  fi
}

# run_tests BUILD_FOLDER [ctest arguments…]: runs the test programs and adds to `passed`, `failed` and `skipped`. A
# GoogleTest program (test NAME is program test_NAME) counts by its tests, and as one failure more if it ends badly
# without naming a failed test: a crash, a sanitizer. Any other test counts as one. The output of what failed is shown.
passed=0 failed=0 skipped=0
run_tests() {
  local folder=$1
  shift
  local reports
  reports=$(pwd)/$folder/reports
  rm -rf "$reports"
  mkdir -p "$reports"
  GTEST_OUTPUT="xml:$reports/" ctest --test-dir "$folder" --output-on-failure --timeout "${REGARD_TEST_TIMEOUT:-900}" \
    -j "${REGARD_TEST_JOBS:-2}" --output-junit "$reports/programs.junit" "$@" >"$reports/log" 2>&1 || true
  [ -f "$reports/programs.junit" ] || { cat "$reports/log" >&2; return 0; }
  local name status report tests failures disabled skips
  while IFS=$'\t' read -r name status; do
    report=$reports/test_$name.xml
    tests=0 failures=0 disabled=0 skips=0
    if [ -s "$report" ]; then
      read -r tests failures disabled < <(sed -nE \
        's/^<testsuites tests="([0-9]+)" failures="([0-9]+)" disabled="([0-9]+)".*/\1 \2 \3/p' "$report") || true
      skips=$(grep -c 'result="skipped"' "$report" || true)
    elif [ "$status" = run ]; then
      tests=1
    fi
    if [ "$status" != run ] && [ "$failures" -eq 0 ]; then
      tests=$((tests + 1)) failures=1
    fi
    passed=$((passed + tests - failures - disabled - skips))
    failed=$((failed + failures))
    skipped=$((skipped + disabled + skips))
    printf '  %-12s %5d passed %3d failed\n' "$name" $((tests - failures - disabled - skips)) "$failures"
  done < <(sed -nE 's/^.*<testcase name="([^"]+)".* status="([a-z]+)".*/\1\t\2/p' "$reports/programs.junit")
  if [ "$failed" -gt 0 ]; then
    # What went wrong stands last, where a log that is cut short still shows it.
    grep -E '\[  FAILED  \] |\*\*\*' "$reports/log" | sort -u | head -n 40 >&2 || true
    grep -E -A12 ': Failure$|ERROR: |WARNING: ThreadSanitizer|runtime error|Exception|terminate' "$reports/log" |
      head -n 120 >&2 || true
    echo "  all of it: $reports/log" >&2
  fi
}

seconds_since() { printf '%d' $((SECONDS - $1)); }
