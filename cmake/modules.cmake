# One static library per folder of src/, one test program per folder of tests/unit/.
# The numerics contract needs -ffp-contract=off everywhere; fast-math nowhere.

add_library(octavo_options INTERFACE)
target_compile_options(octavo_options INTERFACE -Wall -Wextra -Wpedantic -ffp-contract=off)
if(OCTAVO_WERROR)
  target_compile_options(octavo_options INTERFACE -Werror)
endif()
if(OCTAVO_SANITIZE)
  target_compile_options(octavo_options INTERFACE -fsanitize=${OCTAVO_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(octavo_options INTERFACE -fsanitize=${OCTAVO_SANITIZE})
endif()
if(OCTAVO_FUZZ)
  target_compile_options(octavo_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# octavo_module(NAME library...) : src/NAME/*.cc (and one level below) becomes octavo_NAME; a main.cc is left to the
# program that owns it.
function(octavo_module name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc ${CMAKE_CURRENT_SOURCE_DIR}/*/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  if(NOT sources)  # a folder of headers
    add_library(octavo_${name} INTERFACE)
    target_include_directories(octavo_${name} INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(octavo_${name} INTERFACE ${ARGN})
    return()
  endif()
  add_library(octavo_${name} STATIC ${sources})
  target_include_directories(octavo_${name} PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(octavo_${name} PUBLIC ${ARGN} PRIVATE octavo_options)
endfunction()

# octavo_test(NAME library...) : tests/unit/NAME/*.cc becomes the program and test unit_NAME.
function(octavo_test name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/${name}/*.cc)
  add_executable(unit_${name} ${sources} ${CMAKE_SOURCE_DIR}/tests/support/no_pack_cache.cc)
  target_include_directories(unit_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests ${CMAKE_SOURCE_DIR}/tests/unit)
  target_link_libraries(unit_${name} PRIVATE ${ARGN} GTest::gtest GTest::gmock GTest::gtest_main octavo_options)
  target_compile_options(unit_${name} PRIVATE -O1)  # half of a build is compiling tests
  target_compile_definitions(unit_${name} PRIVATE OCTAVO_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_test(NAME unit_${name} COMMAND unit_${name})
endfunction()
