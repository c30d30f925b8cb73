// Characters whose upper or title case is more than one character, in code point order.
// Made by tools/make_special_casing.py (Unicode 14.0.0); do not edit.
#pragma once

namespace octavo::jinja {

struct SpecialCase {
  char32_t code_point;
  const char* utf8;
};

inline constexpr SpecialCase kSpecialUpper[] = {
    {0x00df, "\x53\x53"},                  // latin small letter sharp s
    {0x0149, "\xca\xbc\x4e"},              // latin small letter n preceded by apostrophe
    {0x01f0, "\x4a\xcc\x8c"},              // latin small letter j with caron
    {0x0390, "\xce\x99\xcc\x88\xcc\x81"},  // greek small letter iota with dialytika and tonos
    {0x03b0, "\xce\xa5\xcc\x88\xcc\x81"},  // greek small letter upsilon with dialytika and tonos
    {0x0587, "\xd4\xb5\xd5\x92"},          // armenian small ligature ech yiwn
    {0x1e96, "\x48\xcc\xb1"},              // latin small letter h with line below
    {0x1e97, "\x54\xcc\x88"},              // latin small letter t with diaeresis
    {0x1e98, "\x57\xcc\x8a"},              // latin small letter w with ring above
    {0x1e99, "\x59\xcc\x8a"},              // latin small letter y with ring above
    {0x1e9a, "\x41\xca\xbe"},              // latin small letter a with right half ring
    {0x1f50, "\xce\xa5\xcc\x93"},          // greek small letter upsilon with psili
    {0x1f52, "\xce\xa5\xcc\x93\xcc\x80"},  // greek small letter upsilon with psili and varia
    {0x1f54, "\xce\xa5\xcc\x93\xcc\x81"},  // greek small letter upsilon with psili and oxia
    {0x1f56, "\xce\xa5\xcc\x93\xcd\x82"},  // greek small letter upsilon with psili and perispomeni
    {0x1f80, "\xe1\xbc\x88\xce\x99"},      // greek small letter alpha with psili and ypogegrammeni
    {0x1f81, "\xe1\xbc\x89\xce\x99"},      // greek small letter alpha with dasia and ypogegrammeni
    {0x1f82, "\xe1\xbc\x8a\xce\x99"},      // greek small letter alpha with psili and varia and ypogegrammeni
    {0x1f83, "\xe1\xbc\x8b\xce\x99"},      // greek small letter alpha with dasia and varia and ypogegrammeni
    {0x1f84, "\xe1\xbc\x8c\xce\x99"},      // greek small letter alpha with psili and oxia and ypogegrammeni
    {0x1f85, "\xe1\xbc\x8d\xce\x99"},      // greek small letter alpha with dasia and oxia and ypogegrammeni
    {0x1f86, "\xe1\xbc\x8e\xce\x99"},      // greek small letter alpha with psili and perispomeni and ypogegrammeni
    {0x1f87, "\xe1\xbc\x8f\xce\x99"},      // greek small letter alpha with dasia and perispomeni and ypogegrammeni
    {0x1f88, "\xe1\xbc\x88\xce\x99"},      // greek capital letter alpha with psili and prosgegrammeni
    {0x1f89, "\xe1\xbc\x89\xce\x99"},      // greek capital letter alpha with dasia and prosgegrammeni
    {0x1f8a, "\xe1\xbc\x8a\xce\x99"},      // greek capital letter alpha with psili and varia and prosgegrammeni
    {0x1f8b, "\xe1\xbc\x8b\xce\x99"},      // greek capital letter alpha with dasia and varia and prosgegrammeni
    {0x1f8c, "\xe1\xbc\x8c\xce\x99"},      // greek capital letter alpha with psili and oxia and prosgegrammeni
    {0x1f8d, "\xe1\xbc\x8d\xce\x99"},      // greek capital letter alpha with dasia and oxia and prosgegrammeni
    {0x1f8e, "\xe1\xbc\x8e\xce\x99"},      // greek capital letter alpha with psili and perispomeni and prosgegrammeni
    {0x1f8f, "\xe1\xbc\x8f\xce\x99"},      // greek capital letter alpha with dasia and perispomeni and prosgegrammeni
    {0x1f90, "\xe1\xbc\xa8\xce\x99"},      // greek small letter eta with psili and ypogegrammeni
    {0x1f91, "\xe1\xbc\xa9\xce\x99"},      // greek small letter eta with dasia and ypogegrammeni
    {0x1f92, "\xe1\xbc\xaa\xce\x99"},      // greek small letter eta with psili and varia and ypogegrammeni
    {0x1f93, "\xe1\xbc\xab\xce\x99"},      // greek small letter eta with dasia and varia and ypogegrammeni
    {0x1f94, "\xe1\xbc\xac\xce\x99"},      // greek small letter eta with psili and oxia and ypogegrammeni
    {0x1f95, "\xe1\xbc\xad\xce\x99"},      // greek small letter eta with dasia and oxia and ypogegrammeni
    {0x1f96, "\xe1\xbc\xae\xce\x99"},      // greek small letter eta with psili and perispomeni and ypogegrammeni
    {0x1f97, "\xe1\xbc\xaf\xce\x99"},      // greek small letter eta with dasia and perispomeni and ypogegrammeni
    {0x1f98, "\xe1\xbc\xa8\xce\x99"},      // greek capital letter eta with psili and prosgegrammeni
    {0x1f99, "\xe1\xbc\xa9\xce\x99"},      // greek capital letter eta with dasia and prosgegrammeni
    {0x1f9a, "\xe1\xbc\xaa\xce\x99"},      // greek capital letter eta with psili and varia and prosgegrammeni
    {0x1f9b, "\xe1\xbc\xab\xce\x99"},      // greek capital letter eta with dasia and varia and prosgegrammeni
    {0x1f9c, "\xe1\xbc\xac\xce\x99"},      // greek capital letter eta with psili and oxia and prosgegrammeni
    {0x1f9d, "\xe1\xbc\xad\xce\x99"},      // greek capital letter eta with dasia and oxia and prosgegrammeni
    {0x1f9e, "\xe1\xbc\xae\xce\x99"},      // greek capital letter eta with psili and perispomeni and prosgegrammeni
    {0x1f9f, "\xe1\xbc\xaf\xce\x99"},      // greek capital letter eta with dasia and perispomeni and prosgegrammeni
    {0x1fa0, "\xe1\xbd\xa8\xce\x99"},      // greek small letter omega with psili and ypogegrammeni
    {0x1fa1, "\xe1\xbd\xa9\xce\x99"},      // greek small letter omega with dasia and ypogegrammeni
    {0x1fa2, "\xe1\xbd\xaa\xce\x99"},      // greek small letter omega with psili and varia and ypogegrammeni
    {0x1fa3, "\xe1\xbd\xab\xce\x99"},      // greek small letter omega with dasia and varia and ypogegrammeni
    {0x1fa4, "\xe1\xbd\xac\xce\x99"},      // greek small letter omega with psili and oxia and ypogegrammeni
    {0x1fa5, "\xe1\xbd\xad\xce\x99"},      // greek small letter omega with dasia and oxia and ypogegrammeni
    {0x1fa6, "\xe1\xbd\xae\xce\x99"},      // greek small letter omega with psili and perispomeni and ypogegrammeni
    {0x1fa7, "\xe1\xbd\xaf\xce\x99"},      // greek small letter omega with dasia and perispomeni and ypogegrammeni
    {0x1fa8, "\xe1\xbd\xa8\xce\x99"},      // greek capital letter omega with psili and prosgegrammeni
    {0x1fa9, "\xe1\xbd\xa9\xce\x99"},      // greek capital letter omega with dasia and prosgegrammeni
    {0x1faa, "\xe1\xbd\xaa\xce\x99"},      // greek capital letter omega with psili and varia and prosgegrammeni
    {0x1fab, "\xe1\xbd\xab\xce\x99"},      // greek capital letter omega with dasia and varia and prosgegrammeni
    {0x1fac, "\xe1\xbd\xac\xce\x99"},      // greek capital letter omega with psili and oxia and prosgegrammeni
    {0x1fad, "\xe1\xbd\xad\xce\x99"},      // greek capital letter omega with dasia and oxia and prosgegrammeni
    {0x1fae, "\xe1\xbd\xae\xce\x99"},      // greek capital letter omega with psili and perispomeni and prosgegrammeni
    {0x1faf, "\xe1\xbd\xaf\xce\x99"},      // greek capital letter omega with dasia and perispomeni and prosgegrammeni
    {0x1fb2, "\xe1\xbe\xba\xce\x99"},      // greek small letter alpha with varia and ypogegrammeni
    {0x1fb3, "\xce\x91\xce\x99"},          // greek small letter alpha with ypogegrammeni
    {0x1fb4, "\xce\x86\xce\x99"},          // greek small letter alpha with oxia and ypogegrammeni
    {0x1fb6, "\xce\x91\xcd\x82"},          // greek small letter alpha with perispomeni
    {0x1fb7, "\xce\x91\xcd\x82\xce\x99"},  // greek small letter alpha with perispomeni and ypogegrammeni
    {0x1fbc, "\xce\x91\xce\x99"},          // greek capital letter alpha with prosgegrammeni
    {0x1fc2, "\xe1\xbf\x8a\xce\x99"},      // greek small letter eta with varia and ypogegrammeni
    {0x1fc3, "\xce\x97\xce\x99"},          // greek small letter eta with ypogegrammeni
    {0x1fc4, "\xce\x89\xce\x99"},          // greek small letter eta with oxia and ypogegrammeni
    {0x1fc6, "\xce\x97\xcd\x82"},          // greek small letter eta with perispomeni
    {0x1fc7, "\xce\x97\xcd\x82\xce\x99"},  // greek small letter eta with perispomeni and ypogegrammeni
    {0x1fcc, "\xce\x97\xce\x99"},          // greek capital letter eta with prosgegrammeni
    {0x1fd2, "\xce\x99\xcc\x88\xcc\x80"},  // greek small letter iota with dialytika and varia
    {0x1fd3, "\xce\x99\xcc\x88\xcc\x81"},  // greek small letter iota with dialytika and oxia
    {0x1fd6, "\xce\x99\xcd\x82"},          // greek small letter iota with perispomeni
    {0x1fd7, "\xce\x99\xcc\x88\xcd\x82"},  // greek small letter iota with dialytika and perispomeni
    {0x1fe2, "\xce\xa5\xcc\x88\xcc\x80"},  // greek small letter upsilon with dialytika and varia
    {0x1fe3, "\xce\xa5\xcc\x88\xcc\x81"},  // greek small letter upsilon with dialytika and oxia
    {0x1fe4, "\xce\xa1\xcc\x93"},          // greek small letter rho with psili
    {0x1fe6, "\xce\xa5\xcd\x82"},          // greek small letter upsilon with perispomeni
    {0x1fe7, "\xce\xa5\xcc\x88\xcd\x82"},  // greek small letter upsilon with dialytika and perispomeni
    {0x1ff2, "\xe1\xbf\xba\xce\x99"},      // greek small letter omega with varia and ypogegrammeni
    {0x1ff3, "\xce\xa9\xce\x99"},          // greek small letter omega with ypogegrammeni
    {0x1ff4, "\xce\x8f\xce\x99"},          // greek small letter omega with oxia and ypogegrammeni
    {0x1ff6, "\xce\xa9\xcd\x82"},          // greek small letter omega with perispomeni
    {0x1ff7, "\xce\xa9\xcd\x82\xce\x99"},  // greek small letter omega with perispomeni and ypogegrammeni
    {0x1ffc, "\xce\xa9\xce\x99"},          // greek capital letter omega with prosgegrammeni
    {0xfb00, "\x46\x46"},                  // latin small ligature ff
    {0xfb01, "\x46\x49"},                  // latin small ligature fi
    {0xfb02, "\x46\x4c"},                  // latin small ligature fl
    {0xfb03, "\x46\x46\x49"},              // latin small ligature ffi
    {0xfb04, "\x46\x46\x4c"},              // latin small ligature ffl
    {0xfb05, "\x53\x54"},                  // latin small ligature long s t
    {0xfb06, "\x53\x54"},                  // latin small ligature st
    {0xfb13, "\xd5\x84\xd5\x86"},          // armenian small ligature men now
    {0xfb14, "\xd5\x84\xd4\xb5"},          // armenian small ligature men ech
    {0xfb15, "\xd5\x84\xd4\xbb"},          // armenian small ligature men ini
    {0xfb16, "\xd5\x8e\xd5\x86"},          // armenian small ligature vew now
    {0xfb17, "\xd5\x84\xd4\xbd"},          // armenian small ligature men xeh
};

inline constexpr SpecialCase kSpecialTitle[] = {
    {0x00df, "\x53\x73"},                  // latin small letter sharp s
    {0x0149, "\xca\xbc\x4e"},              // latin small letter n preceded by apostrophe
    {0x01f0, "\x4a\xcc\x8c"},              // latin small letter j with caron
    {0x0390, "\xce\x99\xcc\x88\xcc\x81"},  // greek small letter iota with dialytika and tonos
    {0x03b0, "\xce\xa5\xcc\x88\xcc\x81"},  // greek small letter upsilon with dialytika and tonos
    {0x0587, "\xd4\xb5\xd6\x82"},          // armenian small ligature ech yiwn
    {0x1e96, "\x48\xcc\xb1"},              // latin small letter h with line below
    {0x1e97, "\x54\xcc\x88"},              // latin small letter t with diaeresis
    {0x1e98, "\x57\xcc\x8a"},              // latin small letter w with ring above
    {0x1e99, "\x59\xcc\x8a"},              // latin small letter y with ring above
    {0x1e9a, "\x41\xca\xbe"},              // latin small letter a with right half ring
    {0x1f50, "\xce\xa5\xcc\x93"},          // greek small letter upsilon with psili
    {0x1f52, "\xce\xa5\xcc\x93\xcc\x80"},  // greek small letter upsilon with psili and varia
    {0x1f54, "\xce\xa5\xcc\x93\xcc\x81"},  // greek small letter upsilon with psili and oxia
    {0x1f56, "\xce\xa5\xcc\x93\xcd\x82"},  // greek small letter upsilon with psili and perispomeni
    {0x1fb2, "\xe1\xbe\xba\xcd\x85"},      // greek small letter alpha with varia and ypogegrammeni
    {0x1fb4, "\xce\x86\xcd\x85"},          // greek small letter alpha with oxia and ypogegrammeni
    {0x1fb6, "\xce\x91\xcd\x82"},          // greek small letter alpha with perispomeni
    {0x1fb7, "\xce\x91\xcd\x82\xcd\x85"},  // greek small letter alpha with perispomeni and ypogegrammeni
    {0x1fc2, "\xe1\xbf\x8a\xcd\x85"},      // greek small letter eta with varia and ypogegrammeni
    {0x1fc4, "\xce\x89\xcd\x85"},          // greek small letter eta with oxia and ypogegrammeni
    {0x1fc6, "\xce\x97\xcd\x82"},          // greek small letter eta with perispomeni
    {0x1fc7, "\xce\x97\xcd\x82\xcd\x85"},  // greek small letter eta with perispomeni and ypogegrammeni
    {0x1fd2, "\xce\x99\xcc\x88\xcc\x80"},  // greek small letter iota with dialytika and varia
    {0x1fd3, "\xce\x99\xcc\x88\xcc\x81"},  // greek small letter iota with dialytika and oxia
    {0x1fd6, "\xce\x99\xcd\x82"},          // greek small letter iota with perispomeni
    {0x1fd7, "\xce\x99\xcc\x88\xcd\x82"},  // greek small letter iota with dialytika and perispomeni
    {0x1fe2, "\xce\xa5\xcc\x88\xcc\x80"},  // greek small letter upsilon with dialytika and varia
    {0x1fe3, "\xce\xa5\xcc\x88\xcc\x81"},  // greek small letter upsilon with dialytika and oxia
    {0x1fe4, "\xce\xa1\xcc\x93"},          // greek small letter rho with psili
    {0x1fe6, "\xce\xa5\xcd\x82"},          // greek small letter upsilon with perispomeni
    {0x1fe7, "\xce\xa5\xcc\x88\xcd\x82"},  // greek small letter upsilon with dialytika and perispomeni
    {0x1ff2, "\xe1\xbf\xba\xcd\x85"},      // greek small letter omega with varia and ypogegrammeni
    {0x1ff4, "\xce\x8f\xcd\x85"},          // greek small letter omega with oxia and ypogegrammeni
    {0x1ff6, "\xce\xa9\xcd\x82"},          // greek small letter omega with perispomeni
    {0x1ff7, "\xce\xa9\xcd\x82\xcd\x85"},  // greek small letter omega with perispomeni and ypogegrammeni
    {0xfb00, "\x46\x66"},                  // latin small ligature ff
    {0xfb01, "\x46\x69"},                  // latin small ligature fi
    {0xfb02, "\x46\x6c"},                  // latin small ligature fl
    {0xfb03, "\x46\x66\x69"},              // latin small ligature ffi
    {0xfb04, "\x46\x66\x6c"},              // latin small ligature ffl
    {0xfb05, "\x53\x74"},                  // latin small ligature long s t
    {0xfb06, "\x53\x74"},                  // latin small ligature st
    {0xfb13, "\xd5\x84\xd5\xb6"},          // armenian small ligature men now
    {0xfb14, "\xd5\x84\xd5\xa5"},          // armenian small ligature men ech
    {0xfb15, "\xd5\x84\xd5\xab"},          // armenian small ligature men ini
    {0xfb16, "\xd5\x8e\xd5\xb6"},          // armenian small ligature vew now
    {0xfb17, "\xd5\x84\xd5\xad"},          // armenian small ligature men xeh
};

}  // namespace octavo::jinja
